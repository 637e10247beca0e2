"""Publishers: the elements of a recorded stream, sent to a broker by `rsp replay`."""
