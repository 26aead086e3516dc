"""Trials on a Dask cluster: what travels there, what is done there, and what comes back."""
