"""A file as what it is: text in pages, notebook cells, pictures, PDF pages."""
