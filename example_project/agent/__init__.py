"""The support inbox agent of Harbour Lane Ceramics: rules, policies and no network."""
