"""What every interactive page is put together from."""
