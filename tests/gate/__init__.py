# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The quality gate: make test is python3 -m tests.gate, and needs nothing but Python."""
