# Names that plugins register, for editors and type checkers; made by: make stubs

__all__: list[str] = []
