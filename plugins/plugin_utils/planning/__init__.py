"""Findings to steps: the plan, the consent, and the remedies."""
