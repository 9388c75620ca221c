"""What is wrong with a file, and where."""


class DocumentError(Exception):
    """A file cannot be used: a sentence with the file, the document's number and the line."""

    def __init__(self, file: str, document: int, line: int, problem: str) -> None:
        super().__init__(f"{file}: document {document}, line {line}: {problem}")
