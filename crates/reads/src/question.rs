//! The question to the catalog: one row that says of each name what it is. Does not know what follows from it.
//!
//! A name without a schema stands for all objects of that name, so that no search path can matter. Of each name the
//! row has one digit, the worst of what there is under it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::names::{Name, Needs};

/// What a digit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Fine,
    /// Volatile, or a check that could be.
    Volatile,
    /// A function of the user's with defaults.
    Defaults,
    Temporary,
    Unlogged,
    Sequence,
    Foreign,
    Catalog,
    Unknown,
}

impl Fact {
    pub(crate) fn read(digit: u8) -> Option<Fact> {
        Some(match digit {
            b'0' => Fact::Fine,
            b'1' => Fact::Volatile,
            b'2' => Fact::Defaults,
            b'3' => Fact::Temporary,
            b'4' => Fact::Unlogged,
            b'5' => Fact::Sequence,
            b'6' => Fact::Foreign,
            b'7' => Fact::Catalog,
            b'9' => Fact::Unknown,
            _ => return None,
        })
    }
}

/// What stands between two definitions in the last column. A definition that has one in it is cut there, and neither
/// half will be read.
pub(crate) const BETWEEN: u8 = 1;

/// The question. Its columns: whether anything may be volatile without being named, then the digits of functions,
/// operators, types, relations and fields, then the texts that views and policies add, or NULL if they are too long.
pub(crate) fn question(needs: &Needs) -> String {
    let fields: BTreeSet<Name> = needs.fields.iter().map(Name::bare).collect();
    let relations = names(&needs.relations);
    let columns = [
        IMPLICIT.to_owned(),
        digits(FUNCTION, &names(&needs.functions)),
        digits(OPERATOR, &names(&needs.operators)),
        digits(TYPE, &names(&needs.types)),
        digits(RELATION, &relations),
        digits(FIELD, &names(&fields)),
        DEFINITIONS.replace("NAMES", &relations),
    ];
    format!("select {}", columns.join(", "))
}

fn digits(of_one: &str, names: &str) -> String {
    format!("(select coalesce(string_agg(coalesce(({of_one}), 9)::text, '' order by n.at), '') from {names})")
}

fn names(names: &BTreeSet<Name>) -> String {
    if names.is_empty() {
        return "(select 0 as at, ''::text as schema, ''::name as name where false) n".to_owned();
    }
    let mut list = String::from("(values ");
    for (at, name) in names.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let schema = name.schema.as_deref().map_or("null".to_owned(), literal);
        let _ = write!(list, "{comma}({at}, {schema}::text, {}::name)", literal(&name.name));
    }
    list.push_str(") n(at, schema, name)");
    list
}

/// Means the same whatever `standard_conforming_strings` is.
fn literal(text: &str) -> String {
    let mut literal = String::from("E'");
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push('\\');
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}

/// Casts that need not be written, comparisons by index or sort, what writes values out: nobody names them.
const IMPLICIT: &str = "exists(select from pg_cast c join pg_proc p on p.oid = c.castfunc where p.provolatile = 'v') \
    or exists(select from pg_amproc a join pg_opfamily f on f.oid = a.amprocfamily \
        join pg_am m on m.oid = f.opfmethod and m.amname in ('btree', 'hash') \
        join pg_proc p on p.oid = a.amproc where p.provolatile = 'v') \
    or exists(select from pg_operator o join pg_proc p on p.oid = o.oprcode \
        where p.provolatile = 'v' and o.oprname in ('=', '<>', '<', '>', '<=', '>=')) \
    or exists(select from pg_type t join pg_proc p on p.oid in (t.typoutput, t.typsend) \
        where p.provolatile = 'v' and t.typtype <> 'p')";

const FUNCTION: &str = "select max(case \
        when p.provolatile = 'v' or p.prokind = 'p' then 1 \
        when p.prokind = 'a' and exists(select from pg_aggregate a join pg_proc q on q.oid in (a.aggtransfn, \
            a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, \
            a.aggmfinalfn) where a.aggfnoid = p.oid and q.provolatile = 'v') then 1 \
        when p.pronargdefaults > 0 and s.nspname <> 'pg_catalog' then 2 else 0 end) \
    from pg_proc p join pg_namespace s on s.oid = p.pronamespace \
    where p.proname = n.name and (n.schema is null or s.nspname = n.schema)";

const OPERATOR: &str = "select max(case when exists(select from pg_proc p where p.oid = o.oprcode \
        and p.provolatile = 'v') then 1 else 0 end) \
    from pg_operator o join pg_namespace s on s.oid = o.oprnamespace \
    where o.oprname = n.name and (n.schema is null or s.nspname = n.schema)";

/// A domain that checks and a row type, which may have one within, are not followed.
const TYPE: &str = "select max(case when t.typtype = 'c' or not t.typisdefined \
        or exists(select from pg_type b where b.oid = t.typbasetype and b.typtype in ('c', 'd')) \
        or exists(select from pg_constraint c where c.contypid = t.oid) \
        or exists(select from pg_proc p where p.oid in (t.typinput, t.typreceive, t.typmodin) \
            and p.provolatile = 'v') then 1 else 0 end) \
    from pg_type t join pg_namespace s on s.oid = t.typnamespace \
    where t.typname = n.name and (n.schema is null or s.nspname = n.schema)";

/// The views of `information_schema` have names that tables have, and are meant only where they are named with it.
const RELATION: &str = "select max(case when c.relpersistence = 't' then 3 when c.relpersistence <> 'p' then 4 \
        when c.relkind = 'S' then 5 when c.relkind = 'f' then 6 \
        when s.nspname in ('pg_catalog', 'pg_toast', 'information_schema') then 7 \
        when exists(with recursive d(oid) as (select i.inhrelid from pg_inherits i where i.inhparent = c.oid \
            union select i.inhrelid from pg_inherits i join d on i.inhparent = d.oid) \
            select from d join pg_class k on k.oid = d.oid where k.relpersistence <> 'p' or k.relkind = 'f') \
            then 4 else 0 end) \
    from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.relname = n.name \
    and (n.schema is null and s.nspname <> 'information_schema' or s.nspname = n.schema) \
    and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S', 't')";

/// `a.f` with a of a row type is f(a).
const FIELD: &str = "select coalesce(max(1), 0) from pg_proc p join pg_type t on t.oid = p.proargtypes[0] \
    where p.proname = n.name and p.provolatile = 'v' and p.pronargs > 0 and p.pronargs - p.pronargdefaults <= 1 \
    and t.typtype in ('c', 'p')";

const DEFINITIONS: &str = "(select case when length(all_of) > 40000 then null else coalesce(all_of, '') end from ( \
    select string_agg(one, E'\\001') as all_of from (select pg_get_viewdef(c.oid) as one from NAMES \
        join pg_class c on c.relname = n.name join pg_namespace s on s.oid = c.relnamespace \
        where c.relkind = 'v' and s.nspname not in ('pg_catalog', 'information_schema') \
        and (n.schema is null or s.nspname = n.schema) \
    union all select 'select where ' || pg_get_expr(p.polqual, p.polrelid) from NAMES \
        join pg_class c on c.relname = n.name join pg_namespace s on s.oid = c.relnamespace \
        join pg_policy p on p.polrelid = c.oid where c.relrowsecurity and p.polcmd in ('r', '*') \
        and p.polqual is not null and (n.schema is null or s.nspname = n.schema)) texts) whole)";
