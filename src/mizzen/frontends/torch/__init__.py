"""Read programs that torch.export wrote, and lower them to graphs of TOSA operations."""
