//! What instructions compute: bits in, bits out, without an engine.
