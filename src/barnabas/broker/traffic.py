"""What went out; what came in is counted by each partition."""


class Traffic:
    def __init__(self) -> None:
        self.bytes_out = 0

    def count_out(self, size: int) -> None:
        self.bytes_out += size
