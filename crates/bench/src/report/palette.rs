//! Which colour a target has: the same in every chart, one for a light page and one for a dark. Charts are
//! drawn in the light ones; the page's style sheet finds them by name and puts in what its theme wants.

use super::{CONTROLS, is_ours};
use plotters::style::RGBColor;

/// A colour in both themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour {
    pub light: (u8, u8, u8),
    pub dark: (u8, u8, u8),
}

impl Colour {
    /// As it is drawn, and as plotters writes it.
    pub fn drawn(self) -> RGBColor {
        let (red, green, blue) = self.light;
        RGBColor(red, green, blue)
    }
}

/// `#RRGGBB` with capitals, as plotters writes it.
pub fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour { light, dark }
}

/// The page's own colours, by the names of their variables.
pub const INK: Colour = colour((0x52, 0x51, 0x4E), (0xC3, 0xC2, 0xB7));
pub const GRID: Colour = colour((0xE6, 0xE5, 0xDF), (0x33, 0x33, 0x30));
pub const AXIS: Colour = colour((0xB9, 0xB8, 0xB0), (0x55, 0x54, 0x50));
pub const CARD: Colour = colour((0xFE, 0xFE, 0xFD), (0x1D, 0x1D, 0x1B));

/// Nothing between client and server, and the blind relay: greys, as they compete with nobody.
const OF_CONTROLS: [Colour; 2] =
    [colour((0x5F, 0x5E, 0x5A), (0xB4, 0xB2, 0xA9)), colour((0xA6, 0xA4, 0x9B), (0x77, 0x76, 0x70))];
/// Ours are a family of blues.
const OF_OURS: [Colour; 3] = [
    colour((0x2A, 0x78, 0xD6), (0x39, 0x87, 0xE5)),
    colour((0x12, 0x46, 0x8A), (0x9E, 0xC5, 0xF4)),
    colour((0x86, 0xB6, 0xEF), (0x23, 0x60, 0xB0)),
];
const OF_OTHERS: [Colour; 7] = [
    colour((0xEB, 0x68, 0x34), (0xD9, 0x59, 0x26)),
    colour((0x1B, 0xAF, 0x7A), (0x19, 0x9E, 0x70)),
    colour((0x7A, 0x5A, 0xC8), (0x90, 0x85, 0xE9)),
    colour((0xED, 0xA1, 0x00), (0xC9, 0x85, 0x00)),
    colour((0xE8, 0x7B, 0xA4), (0xD5, 0x51, 0x81)),
    colour((0x00, 0x83, 0x00), (0x2F, 0x9E, 0x2F)),
    colour((0xC9, 0x2F, 0x2E), (0xE6, 0x67, 0x67)),
];

/// Every target with its colour, in the report's order.
#[derive(Debug, Clone)]
pub struct Palette(Vec<(String, Colour)>);

impl Palette {
    /// For those targets.
    pub fn of(targets: &[&str]) -> Palette {
        let (mut ours, mut others) = (OF_OURS.iter(), OF_OTHERS.iter().cycle());
        let colour = |&target: &&str| {
            let control = CONTROLS.iter().position(|&control| control == target);
            let own = || is_ours(target).then(|| ours.next()).flatten();
            let found = control.and_then(|at| OF_CONTROLS.get(at)).or_else(own).or_else(|| others.next());
            (target.to_owned(), *found.unwrap_or(&INK))
        };
        Palette(targets.iter().map(colour).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Colour)> {
        self.0.iter().map(|(target, colour)| (target.as_str(), *colour))
    }
}
