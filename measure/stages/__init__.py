"""Stages of measure/torch_stages.py: each measures one thing with PyTorch and writes its rows as they come."""
