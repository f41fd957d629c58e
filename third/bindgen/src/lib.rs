//! What the build script of `pg_query` asks of bindgen, and no more: declarations of libpg_query's functions, written by
//! hand in `pg_query.txt`. The real bindgen needs libclang, some 100 MB, to make the same of one short header.
//!
//! It stops the build if the header is not the one that the declarations were written for.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// As much of the real one as is used.
#[derive(Debug, Default)]
pub struct Builder {
    header: PathBuf,
}

/// The declarations.
#[derive(Debug)]
pub struct Bindings(());

impl Builder {
    /// Which header is read.
    #[must_use]
    pub fn header(mut self, header: impl Into<String>) -> Builder {
        self.header = header.into().into();
        self
    }

    /// Checks that the declarations are those of the header.
    ///
    /// # Errors
    /// They are not, or the header cannot be read.
    pub fn generate(self) -> Result<Bindings, String> {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        for header in ["pg_query.h", "postgres_deparse.h"] {
            let path = self.header.with_file_name(header);
            let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            text.iter().for_each(|&byte| digest.take(byte));
        }
        if digest.0 == HEADERS {
            return Ok(Bindings(()));
        }
        Err(format!(
            "the headers of libpg_query are others (digest {:#018x}): compare third/bindgen/src/pg_query.txt with them, \
            field by field, then put that digest into third/bindgen/src/lib.rs",
            digest.0
        ))
    }
}

impl Bindings {
    /// Writes them out.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn write_to_file(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        std::fs::write(path, include_str!("pg_query.txt"))
    }
}

/// FNV-1a: against change by accident.
struct Digest(u64);

impl Digest {
    fn take(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

/// Of `pg_query.h` and `postgres_deparse.h` of libpg_query 18.1.
const HEADERS: u64 = 0x4697_f517_3f3c_4199;
