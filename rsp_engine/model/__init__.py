"""The values that all rooms share: frozen, slotted, typed, and free of any act."""
