"""Stub."""


class FittedCrowd:
    @property
    def confidence_(self):
        return self.result_.posterior.max(1)


def annotator_frame(result): ...
