//! `SHOW` of a session parameter, and `SELECT 1`: tables of one constant.

use model::{Column, Table};

use super::cell::{int4_column, text, text_column};
use crate::command::Parameter;

pub(crate) const ONE: &[Column] = &[int4_column("?column?")];

pub(crate) fn one() -> Table {
    Table { columns: ONE.to_vec(), rows: vec![vec![text("1")]] }
}

pub(crate) fn parameter_columns(parameter: Parameter) -> &'static [Column] {
    match parameter {
        Parameter::ApplicationName => const { &[text_column("application_name")] },
        Parameter::ClientEncoding => const { &[text_column("client_encoding")] },
        Parameter::DateStyle => const { &[text_column("datestyle")] },
        Parameter::DefaultTransactionIsolation => const { &[text_column("default_transaction_isolation")] },
        Parameter::ExtraFloatDigits => const { &[text_column("extra_float_digits")] },
        Parameter::StandardConformingStrings => const { &[text_column("standard_conforming_strings")] },
        Parameter::TimeZone => const { &[text_column("timezone")] },
    }
}

pub(crate) fn parameter(parameter: Parameter) -> Table {
    Table { columns: parameter_columns(parameter).to_vec(), rows: vec![vec![text(parameter.value())]] }
}
