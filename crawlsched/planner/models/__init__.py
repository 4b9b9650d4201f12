"""Models: which of some hypotheses foretells visits best: powers of the likelihood, decay and stationarity of rates.

Knows probabilities, and neither pages nor plans. Begin reading with `log_losses`.
"""
