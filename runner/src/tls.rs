//! TLS for whoever asks another server: one implementation in the whole program.

/// Chooses it, once; whoever makes a client calls this before.
pub(crate) fn ready() {
    // That it was chosen before is what is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
