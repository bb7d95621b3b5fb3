"""The bricks of models, made of `attention` and `linear`."""
