//! The built-in encryption: AES-256-GCM, block by block.
//!
//! ```text
//! stored   nonce[12] ciphertext[length of the block] tag[16]
//! ```
//! The nonce is random and new for every block; the tag covers the block's bytes. This transformer
//! is specific to anyrec: no other implementation supports it. It does not hide or protect the
//! header, the number and sizes of blocks, or their order (a block that is copied or moved as a
//! whole still authenticates). With random nonces, one key is safe for about 2^32 blocks.

use super::transform::Transformer;
use crate::base::memory::check_available;
use crate::base::{Error, Limits, Result};
use aes_gcm::aead::{Aead, Generate, KeyInit};

const NONCE: usize = 12;
const TAG: u64 = 16;

pub(super) struct Aes256Gcm {
    cipher: aes_gcm::Aes256Gcm,
}

impl Aes256Gcm {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Aes256Gcm { cipher: aes_gcm::Aes256Gcm::new(&key.into()) }
    }
}

impl Transformer for Aes256Gcm {
    fn encode(&self, block: &[u8]) -> Result<Vec<u8>> {
        let nonce = <[u8; NONCE]>::try_generate().map_err(|error| {
            Error::io(
                "cannot get random numbers from the operating system",
                std::io::Error::other(error.to_string()),
            )
        })?;
        let sealed = self
            .cipher
            .encrypt(&nonce.into(), block)
            .map_err(|_| Error::invalid("the block is too large to encrypt"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    fn decode(&self, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
        let (nonce, sealed) = stored.split_first_chunk::<NONCE>().ok_or_else(|| {
            Error::corrupt(format!("an encrypted block of {} bytes has no nonce", stored.len()))
        })?;
        let size = (sealed.len() as u64).saturating_sub(TAG);
        if size > limit {
            return Err(Limits::exceeded("encrypted block size", size, limit));
        }
        check_available(sealed.len())?;
        self.cipher
            .decrypt(&(*nonce).into(), sealed)
            .map_err(|_| Error::corrupt("decryption failed: the key is wrong, or the block was changed"))
    }
}
