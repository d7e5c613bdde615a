# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Real kubeadm clusters of systemd nodes in podman, from Debian packages and Go modules alone."""
