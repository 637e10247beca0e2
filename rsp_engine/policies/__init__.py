"""The room of the refresh policies: each elects, within a budget, the keys to fetch anew."""
