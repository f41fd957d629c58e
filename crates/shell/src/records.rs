//! TLS records between a socket and its session: as many as there are with each system call.
//!
//! rustls itself would read in pieces of 4 KB.

use std::io::{self, ErrorKind, IoSlice, Read, Write};

use rustls::Connection;

use crate::socket::{Received, Socket};

/// More than a session ever holds of a record that has not come whole: the largest record has 18,437 bytes. Plain text
/// is no longer than the records that it was in, so where records are read so far behind the beginning of a
/// buffer, their text never reaches those that are still to be opened.
const HELD_MAX: usize = 20 << 10;

/// Reads what is there, and gives the plain text of all records that are whole.
pub fn receive(socket: &Socket, tls: &mut Connection, into: &mut [u8]) -> Received {
    loop {
        // A session that has failed says so again, after all that came before.
        let has_failed = tls.process_new_packets().is_err();
        match tls.reader().read(into) {
            Ok(0) => return Received::End,
            Ok(count) => return Received::Some(count, true),
            Err(error) if error.kind() == ErrorKind::WouldBlock && !has_failed => {}
            Err(_) => return end(socket, tls),
        }
        let has_room = into.len() >= 2 * HELD_MAX;
        let read =
            if has_room { socket.read(&mut into[HELD_MAX..]) } else { tls.read_tls(&mut Reader(socket)) };
        let count = match read {
            Ok(0) => return Received::End,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Nothing,
            Err(_) => return Received::Broken,
        };
        if !has_room {
            continue;
        }
        let Some(Opened { text, is_over }) = open(tls, into, count) else { return Received::Broken };
        // A short read has emptied the socket: what comes later makes an edge of its own.
        let is_empty = HELD_MAX + count < into.len();
        match text {
            0 if is_over => return end(socket, tls),
            0 if is_empty => return Received::Nothing,
            0 => {}
            text => return Received::Some(text, is_over || !is_empty),
        }
    }
}

struct Opened {
    /// Bytes of plain text at the beginning of the buffer.
    text: usize,
    /// Nothing comes after them.
    is_over: bool,
}

/// Opens the records that were read behind the first `HELD_MAX` bytes of the buffer, and puts their text at its
/// beginning. `None` if they are no records.
fn open(tls: &mut Connection, buffer: &mut [u8], count: usize) -> Option<Opened> {
    let (mut from, until) = (HELD_MAX, HELD_MAX + count);
    let mut opened = Opened { text: 0, is_over: false };
    while from < until && !opened.is_over {
        match tls.read_tls(&mut &buffer[from..until]).ok()? {
            // What comes behind the peer's goodbye is nothing.
            0 => opened.is_over = true,
            taken => from += taken,
        }
        let has_text = match tls.process_new_packets() {
            Ok(state) => {
                opened.is_over |= state.peer_has_closed();
                state.plaintext_bytes_to_read() > 0
            }
            Err(_) => {
                opened.is_over = true;
                true
            }
        };
        if has_text {
            // It may be the text of records before the one that failed, or none.
            opened.text += tls.reader().read(&mut buffer[opened.text..from]).unwrap_or(0);
        }
    }
    Some(opened)
}

/// The session is at its end; the alert that says why may still be to be sent.
fn end(socket: &Socket, tls: &mut Connection) -> Received {
    let _ = flush(socket, tls);
    Received::End
}

/// Seals bytes that belong together in as few records as they fit.
///
/// # Errors
/// The session has failed.
pub fn seal(tls: &mut Connection, slices: &[IoSlice<'_>]) -> io::Result<()> {
    let mut taken = tls.writer().write_vectored(slices)?;
    for slice in slices {
        let skip = taken.min(slice.len());
        taken -= skip;
        // Only where keys are renewed in between.
        if skip < slice.len() {
            tls.writer().write_all(&slice[skip..])?;
        }
    }
    Ok(())
}

/// Writes the session's records. True if none is left.
///
/// # Errors
/// Those of `send`, but for a socket that takes no more.
pub fn flush(socket: &Socket, tls: &mut Connection) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut Writer(socket)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

struct Reader<'a>(&'a Socket);

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

struct Writer<'a>(&'a Socket);

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [one] => self.0.write(one),
            many => self.0.write_vectored(many),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
