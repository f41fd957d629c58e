//! A table of text, as the console answers it and as the client's session encodes it in rows.

/// What PostgreSQL type a column claims to be. All values travel in text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `text`, oid 25.
    Text,
    /// `int4`, oid 23.
    Int4,
    /// `int8`, oid 20.
    Int8,
    /// `numeric`, oid 1700.
    Numeric,
    /// `bytea`, oid 17.
    Bytea,
}

impl ColumnType {
    /// The type's object id in `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            ColumnType::Text => 25,
            ColumnType::Int4 => 23,
            ColumnType::Int8 => 20,
            ColumnType::Numeric => 1700,
            ColumnType::Bytea => 17,
        }
    }

    /// The type's `typlen`: its width in bytes, or -1 where it varies.
    pub fn width(self) -> i16 {
        match self {
            ColumnType::Int4 => 4,
            ColumnType::Int8 => 8,
            ColumnType::Text | ColumnType::Numeric | ColumnType::Bytea => -1,
        }
    }
}

/// A column's name and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As tools match it: never renamed.
    pub name: &'static str,
    /// The type told to the client.
    pub kind: ColumnType,
}

/// One value in text format; `None` is SQL NULL.
pub type Cell = Option<String>;

/// Named, typed columns and rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows; each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}
