//! TLS for connections to other servers: one implementation in the whole program.

/// Chooses it, once. Call this before making a client.
pub(crate) fn ready() {
    // An error only says that it was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
