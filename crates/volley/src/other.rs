//! Elsewhere there is none.

use std::convert::Infallible;
use std::io;
use std::os::fd::RawFd;

use crate::Miss;

/// No volley can be made on this system.
#[derive(Debug)]
pub struct Volley(Infallible);

#[expect(missing_docs, reason = "never called: see the one for Linux")]
impl Volley {
    pub fn new(_base: u32) -> io::Result<Volley> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn has_room(&self, _count: usize) -> bool {
        match self.0 {}
    }

    pub fn is_empty(&self) -> bool {
        match self.0 {}
    }

    pub fn round(&self) -> u32 {
        match self.0 {}
    }

    pub fn load<'a>(&mut self, _fd: RawFd, _parts: impl Iterator<Item = &'a [u8]>) {
        match self.0 {}
    }

    pub fn fire(&mut self) {
        match self.0 {}
    }

    pub fn take_miss(&mut self, _fd: RawFd) -> Option<Vec<u8>> {
        match self.0 {}
    }

    pub fn has_missed(&self) -> bool {
        match self.0 {}
    }

    pub fn take_misses(&mut self) -> Vec<Miss> {
        match self.0 {}
    }
}
