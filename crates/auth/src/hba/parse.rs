//! From the text of an HBA file to its rules, and where it is wrong. Does not know what a rule is used for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Names, Network, Rule, Source, TlsNeed};
use crate::tokens::{Token, TokenKind, Tokens, numbered_lines};
use crate::{ClientMethod, Password, Problems};

/// What is wrong with a line of the HBA file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HbaFault {
    /// Neither `all` nor an IPv4 or IPv6 address; names, `samehost` and `samenet` are not supported.
    AddressMalformed,
    /// The address has bits set that its mask does not cover, so it could never match.
    AddressOutsideMask,
    /// `+group` is not supported.
    GroupUnsupported,
    /// Files that include one another too deeply.
    IncludeTooDeep,
    /// The file behind `@name` cannot be read.
    IncludeUnreadable,
    /// More included files than we read.
    IncludesTooMany,
    /// Neither a bit count nor a mask of the address's family.
    MaskMalformed,
    /// No such method; `any` and `pam` are not for HBA files.
    MethodUnknown,
    /// A database or user is missing.
    NameMissing,
    /// A byte that is not UTF-8.
    NotUtf8,
    /// An option other than `map=NAME` after `cert` or `peer`.
    OptionUnsupported,
    /// A quote without its end.
    QuoteUnclosed,
    /// `samerole` and `samegroup` are not supported.
    SameRoleUnsupported,
    /// None of `local`, `host`, `hostssl` and `hostnossl`.
    TypeUnknown,
}

impl fmt::Display for HbaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HbaFault::AddressMalformed => "expected `all`, an IPv4 or an IPv6 address",
            HbaFault::AddressOutsideMask => "address does not match mask",
            HbaFault::GroupUnsupported => "+group is not supported",
            HbaFault::IncludeTooDeep => "files include one another too deeply",
            HbaFault::IncludeUnreadable => "included file cannot be read",
            HbaFault::IncludesTooMany => "too many included files",
            HbaFault::MaskMalformed => "invalid mask",
            HbaFault::MethodUnknown => "unsupported method",
            HbaFault::NameMissing => "expected a database or user name",
            HbaFault::NotUtf8 => "not valid UTF-8",
            HbaFault::OptionUnsupported => "unsupported option",
            HbaFault::QuoteUnclosed => "quote is not closed",
            HbaFault::SameRoleUnsupported => "samerole and samegroup are not supported",
            HbaFault::TypeUnknown => "expected local, host, hostssl or hostnossl",
        })
    }
}

/// What a line parser gives up with: the column and the fault.
type Located<T> = Result<T, (usize, HbaFault)>;

pub(super) fn rules(
    text: &[u8],
    files: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> (Vec<Rule>, Problems<HbaFault>) {
    let mut includes = Includes { files, left: INCLUDES_MAX };
    let mut rules = Vec::new();
    let mut problems = Problems::new();
    for (number, line) in numbered_lines(text) {
        let mut tokens = Tokens::new(&line);
        if tokens.peek().kind == TokenKind::End {
            continue;
        }
        match rule(&mut tokens, number, &mut includes) {
            Ok(rule) => rules.push(rule),
            Err((column, fault)) => problems.push(number, column, fault),
        }
    }
    (rules, problems)
}

fn rule(tokens: &mut Tokens<'_>, number: usize, includes: &mut Includes<'_>) -> Located<Rule> {
    let (word, column) = word(tokens, HbaFault::TypeUnknown)?;
    let tls = match word.as_str() {
        "local" => None,
        "host" => Some(TlsNeed::Either),
        "hostssl" => Some(TlsNeed::On),
        "hostnossl" => Some(TlsNeed::Off),
        _ => return Err((column, HbaFault::TypeUnknown)),
    };
    let mut databases = Names::default();
    names(tokens, &mut databases, &Place { column: NameColumn::Database, folder: "", depth: 0 }, includes)?;
    let mut users = Names::default();
    names(tokens, &mut users, &Place { column: NameColumn::User, folder: "", depth: 0 }, includes)?;
    let source = match tls {
        None => Source::Local,
        Some(tls) => Source::Tcp { tls, network: network(tokens)? },
    };
    let (word, column) = self::word(tokens, HbaFault::MethodUnknown)?;
    let method = ClientMethod::from_hba(&word).ok_or((column, HbaFault::MethodUnknown))?;
    let mut rule = Rule {
        source,
        databases,
        users,
        method,
        map: None,
        ldap_options: None,
        line: u32::try_from(number).unwrap_or(u32::MAX),
    };
    if method == ClientMethod::Ldap {
        rule.ldap_options = Some(Password::new(tokens.rest()));
        return Ok(rule);
    }
    if matches!(method, ClientMethod::Cert | ClientMethod::Peer) {
        rule.map = map_option(tokens)?;
    }
    let token = tokens.next();
    match token.kind {
        TokenKind::End => Ok(rule),
        _ => Err((token.column, fault_of(&token, HbaFault::OptionUnsupported))),
    }
}

/// `map=NAME` or `map="NAME"`, if it stands here.
fn map_option(tokens: &mut Tokens<'_>) -> Located<Option<String>> {
    let token = tokens.peek();
    let TokenKind::Word(word) = &token.kind else { return Ok(None) };
    let Some(name) = word.strip_prefix("map=") else { return Ok(None) };
    tokens.next();
    if !name.is_empty() {
        return Ok(Some(name.to_owned()));
    }
    let value = tokens.next();
    match value.kind {
        TokenKind::Quoted(name) => Ok(Some(name)),
        _ => Err((value.column, fault_of(&value, HbaFault::OptionUnsupported))),
    }
}

/// The files read for `@name`, and how many more may be.
struct Includes<'a> {
    files: &'a mut dyn FnMut(&str) -> Option<Vec<u8>>,
    left: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NameColumn {
    Database,
    User,
}

/// Where a list of names stands.
struct Place<'a> {
    column: NameColumn,
    /// The directory of the file, relative to the HBA file's; empty or with a slash at its end.
    folder: &'a str,
    depth: usize,
}

/// Names with commas between them.
fn names(
    tokens: &mut Tokens<'_>,
    names: &mut Names,
    place: &Place<'_>,
    includes: &mut Includes<'_>,
) -> Located<()> {
    loop {
        let token = tokens.next();
        match &token.kind {
            TokenKind::Word(word) => {
                name(word, names, place, includes).map_err(|fault| (token.column, fault))?;
            }
            TokenKind::Quoted(name) => {
                names.listed.insert(name.clone());
            }
            _ => return Err((token.column, fault_of(&token, HbaFault::NameMissing))),
        }
        if tokens.peek().kind != TokenKind::Comma {
            return Ok(());
        }
        tokens.next();
    }
}

/// One word without quotes: a keyword, a file or a name.
fn name(
    word: &str,
    names: &mut Names,
    place: &Place<'_>,
    includes: &mut Includes<'_>,
) -> Result<(), HbaFault> {
    let of_databases = place.column == NameColumn::Database;
    match word {
        "all" => names.all = true,
        "sameuser" if of_databases => names.same_user = true,
        "replication" if of_databases => names.replication = true,
        "samerole" | "samegroup" if of_databases => return Err(HbaFault::SameRoleUnsupported),
        _ if word.starts_with('+') => return Err(HbaFault::GroupUnsupported),
        _ => match word.strip_prefix('@') {
            Some(file) => return include(file, names, place, includes),
            None => {
                names.listed.insert(word.to_owned());
            }
        },
    }
    Ok(())
}

/// Every line of the file is a list of names; blank lines and comments are passed over.
fn include(
    file: &str,
    names: &mut Names,
    place: &Place<'_>,
    includes: &mut Includes<'_>,
) -> Result<(), HbaFault> {
    if place.depth == INCLUDE_DEPTH_MAX {
        return Err(HbaFault::IncludeTooDeep);
    }
    includes.left = includes.left.checked_sub(1).ok_or(HbaFault::IncludesTooMany)?;
    if file.is_empty() {
        return Err(HbaFault::IncludeUnreadable);
    }
    let path = if file.starts_with('/') { file.to_owned() } else { format!("{}{file}", place.folder) };
    let text = (includes.files)(&path).ok_or(HbaFault::IncludeUnreadable)?;
    let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
    let inner = Place { column: place.column, folder, depth: place.depth + 1 };
    for (_, line) in numbered_lines(&text) {
        let mut tokens = Tokens::new(&line);
        while tokens.peek().kind != TokenKind::End {
            self::names(&mut tokens, names, &inner, includes).map_err(|(_, fault)| fault)?;
        }
    }
    Ok(())
}

/// `all`, `address/bits`, or an address and a mask.
fn network(tokens: &mut Tokens<'_>) -> Located<Network> {
    let (text, column) = word(tokens, HbaFault::AddressMalformed)?;
    if text == "all" {
        return Ok(Network::All);
    }
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text.as_str(), None),
    };
    let address = address.parse::<IpAddr>().map_err(|_| (column, HbaFault::AddressMalformed))?;
    let (mask, mask_column) = match bits {
        Some(bits) => (prefix_mask(bits, address), column),
        None => {
            let (text, column) = word(tokens, HbaFault::MaskMalformed)?;
            (text.parse().ok(), column)
        }
    };
    let mask = mask.ok_or((mask_column, HbaFault::MaskMalformed))?;
    let (network, covered) = match (address, mask) {
        (IpAddr::V4(base), IpAddr::V4(mask)) => {
            let (base, mask) = (base.to_bits(), mask.to_bits());
            (Network::V4 { base, mask }, base & !mask == 0)
        }
        (IpAddr::V6(base), IpAddr::V6(mask)) => {
            let (base, mask) = (base.to_bits(), mask.to_bits());
            (Network::V6 { base, mask }, base & !mask == 0)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
            return Err((mask_column, HbaFault::MaskMalformed));
        }
    };
    if covered { Ok(network) } else { Err((column, HbaFault::AddressOutsideMask)) }
}

/// The mask of this many leading bits, in the address's family.
fn prefix_mask(bits: &str, address: IpAddr) -> Option<IpAddr> {
    // `parse` would take a sign.
    let bits: u32 = bits.parse().ok().filter(|_| bits.bytes().all(|byte| byte.is_ascii_digit()))?;
    match address {
        IpAddr::V4(_) => {
            let mask = u32::MAX.checked_shl(32u32.checked_sub(bits)?).unwrap_or(0);
            Some(Ipv4Addr::from_bits(mask).into())
        }
        IpAddr::V6(_) => {
            let mask = u128::MAX.checked_shl(128u32.checked_sub(bits)?).unwrap_or(0);
            Some(Ipv6Addr::from_bits(mask).into())
        }
    }
}

/// The next word without quotes, or this fault.
fn word(tokens: &mut Tokens<'_>, missing: HbaFault) -> Located<(String, usize)> {
    let token = tokens.next();
    match token.kind {
        TokenKind::Word(word) => Ok((word, token.column)),
        _ => Err((token.column, fault_of(&token, missing))),
    }
}

/// What an unwelcome token is: broken in itself, or else `otherwise`.
fn fault_of(token: &Token, otherwise: HbaFault) -> HbaFault {
    match token.kind {
        TokenKind::Unclosed => HbaFault::QuoteUnclosed,
        TokenKind::NotUtf8 => HbaFault::NotUtf8,
        _ => otherwise,
    }
}

/// How deeply files may include one another.
pub const INCLUDE_DEPTH_MAX: usize = 10;

/// How many files one HBA file may include in all, a file included twice counting twice.
pub const INCLUDES_MAX: usize = 1000;
