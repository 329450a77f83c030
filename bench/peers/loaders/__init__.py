"""Loaders that take part in the figures of loading: one file each, run by the environment that GROUP names.

Each has `GROUP`, and `make(data, mode)` whose result is a function: one call, one epoch, as an iterable of
    train   (images, labels): float32 (batch, 3, 224, 224), a random crop, half of them mirrored, normalised
    bytes   (sizes, labels): of encoded images that are in the consumer's memory
What a loader must write for itself beforehand, it writes in `prepare(data)`.
"""
