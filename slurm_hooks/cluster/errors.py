"""The one error of cluster files: everything that is wrong with the file, all at once.

A mistake of the operator's is a value with a path, a problem and a remedy; English is complete
here because it is read by a person and compared nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """One mistake. `path` is a field's path, `line L, column C`, or the file's own name."""

    path: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; {self.remedy}"


class ClusterFileError(Exception):
    """The cluster file cannot be used; `errors` holds every reason found, in file order."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = errors
