"""What the tests need besides packages and models."""
