//! SipHash-1-3 with 128 bits, as its authors describe it, of up to eight bytes at a time.

pub(super) struct Sip {
    state: [u64; 4],
    /// The bytes that are not mixed in yet, the first the lowest.
    tail: u64,
    /// How many bits of it are used.
    bits: u32,
    length: u64,
}

impl Sip {
    pub(super) fn new([first, second]: [u64; 2]) -> Sip {
        let state = [
            first ^ 0x736f_6d65_7073_6575,
            // 0xee asks for 128 bits.
            second ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            first ^ 0x6c79_6765_6e65_7261,
            second ^ 0x7465_6462_7974_6573,
        ];
        Sip { state, tail: 0, bits: 0, length: 0 }
    }

    /// Takes so many bytes, 1 to 8, of a word: the lowest are the first, and those above are zero.
    #[inline]
    pub(super) fn push(&mut self, word: u64, bytes: u32) {
        self.tail |= word << self.bits;
        self.length = self.length.wrapping_add(u64::from(bytes));
        let bits = self.bits + 8 * bytes;
        if bits < 64 {
            self.bits = bits;
            return;
        }
        self.mix(self.tail);
        self.tail = word.checked_shr(64 - self.bits).unwrap_or(0);
        self.bits = bits - 64;
    }

    pub(super) fn finish(mut self) -> [u64; 2] {
        self.mix(self.tail | self.length << 56);
        self.state[2] ^= 0xee;
        let first = self.fold();
        self.state[1] ^= 0xdd;
        [first, self.fold()]
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        self.state[3] ^= word;
        self.round();
        self.state[0] ^= word;
    }

    fn fold(&mut self) -> u64 {
        for _ in 0..3 {
            self.round();
        }
        self.state.iter().fold(0, |all, part| all ^ part)
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.state;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.state = [a, b, c, d];
    }
}
