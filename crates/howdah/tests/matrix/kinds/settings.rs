//! Settings: SET in its forms, set_config, roles, startup parameters.

use super::super::kind::{Kind, Protocol};

pub const KINDS: &[Kind] = &[
    // Types of values.
    Kind::carried("SET of a bool", "set enable_seqscan = off", "show enable_seqscan", "reset enable_seqscan"),
    Kind::carried("SET of an int", "set effective_io_concurrency = 7", EFFECTIVE, "reset all"),
    Kind::carried("SET of a size", "set work_mem = '5MB'", WORK_MEM, "reset work_mem"),
    Kind::carried(
        "SET of a real",
        "set random_page_cost = 1.25",
        "show random_page_cost",
        "set random_page_cost to default",
    ),
    Kind::carried("SET of an enum", "set bytea_output = 'escape'", BYTEA, "reset bytea_output"),
    Kind::carried(
        "SET of a string",
        r#"set application_name = 'it''s "odd" \ one'"#,
        "show application_name",
        "reset application_name",
    ),
    Kind::carried(
        "SET of a string with escapes",
        r"set application_name = E'it\'s \\ \t one'",
        "show application_name",
        "reset application_name",
    ),
    Kind::carried(
        "SET of a list with quotes",
        r#"set search_path = "a b", matrix, 'c,d', "$user", "q""uote""#,
        "show search_path\nselect current_schemas(false)",
        "reset search_path",
    ),
    Kind::carried("SET of an empty list", "set search_path = ''", SEARCH_PATH, "reset search_path"),
    Kind::carried("SET SCHEMA", "set schema 'matrix'", SEARCH_PATH, "set search_path to default"),
    Kind::carried("SET of a custom setting", "set myapp.user_id = '42'", CUSTOM, "reset myapp.user_id"),
    Kind::carried(
        "SET of a custom setting, quoted",
        r#"set "myapp"."user_id" = 'it''s 42'"#,
        CUSTOM,
        "reset myapp.user_id",
    ),
    Kind::carried("SET with comments", "SET/**/work_mem/* a */TO '5MB' -- b", WORK_MEM, "RESET/**/work_mem"),
    Kind::carried("SET SESSION", "set session work_mem = '5MB'", WORK_MEM, "reset work_mem"),
    Kind::carried(
        "SET of many",
        "set work_mem = '5MB'\nset geqo = off\nset lock_timeout = '12s'\nset extra_float_digits = 0\n\
         set idle_in_transaction_session_timeout = '1min'\nset constraint_exclusion = on",
        "show work_mem\nshow geqo\nshow lock_timeout\nselect 0.1::float8 + 0.2\n\
         show idle_in_transaction_session_timeout\nshow constraint_exclusion",
        "reset geqo\nreset all",
    ),
    Kind::carried("SET twice", "set work_mem = '5MB'\nset work_mem = '6MB'", WORK_MEM, "reset work_mem"),
    Kind::carried("SET to what it is", "set work_mem = '4MB'", WORK_MEM, "reset work_mem"),
    Kind::carried("SET that fails", "set work_mem = 'nonsense'", WORK_MEM, "reset work_mem"),
    Kind::carried("SET of nothing known", "set no_such_setting = 1", WORK_MEM, "reset no_such_setting"),
    // Those with a syntax or a meaning of their own.
    Kind::carried("TIME ZONE name", "set time zone 'Asia/Tokyo'", ZONE, "set time zone default"),
    Kind::carried(
        "TIME ZONE interval",
        "set time zone interval '+05:30' hour to minute",
        ZONE,
        "set time zone local",
    ),
    Kind::carried("TIME ZONE number", "set time zone -7", ZONE, "reset timezone"),
    Kind::carried("TimeZone by name", "set TimeZone to 'Europe/Paris'", ZONE, "reset time zone"),
    Kind::carried(
        "TIME ZONE local",
        "set time zone 'Asia/Tokyo'\nset time zone local",
        ZONE,
        "reset time zone",
    ),
    Kind::carried("client_encoding", "set client_encoding = 'LATIN1'", ENCODING, "reset client_encoding"),
    Kind::carried("SET NAMES", "set names 'LATIN9'", ENCODING, "set names default"),
    Kind::carried("DateStyle", "set datestyle = 'German, DMY'", DATE, "reset datestyle"),
    Kind::carried(
        "DateStyle in halves",
        "set datestyle = 'SQL'\nset datestyle = DMY",
        DATE,
        "set datestyle to default",
    ),
    Kind::carried(
        "IntervalStyle",
        "set intervalstyle = 'iso_8601'",
        "select '1 day 2 hours'::interval",
        "reset intervalstyle",
    ),
    Kind::carried(
        "standard_conforming_strings",
        r"set standard_conforming_strings = off",
        r"show standard_conforming_strings",
        "reset standard_conforming_strings",
    ),
    Kind::carried(
        "SESSION CHARACTERISTICS",
        "set session characteristics as transaction isolation level serializable, read only, deferrable",
        ISOLATION,
        "set session characteristics as transaction isolation level read committed, read write, not deferrable",
    ),
    Kind::carried(
        "default_transaction_isolation",
        "set default_transaction_isolation = 'repeatable read'",
        ISOLATION,
        "reset default_transaction_isolation",
    ),
    Kind::carried(
        "statement_timeout",
        "set statement_timeout = '54321ms'",
        "show statement_timeout",
        "set statement_timeout = 0",
    ),
    Kind::carried(
        "statement_timeout that strikes",
        "set statement_timeout = '300ms'",
        "select pg_sleep(2)",
        "set statement_timeout = 0",
    )
    .by(&[Protocol::Simple])
    .alone()
    .private(),
    // Who it is.
    Kind::carried("ROLE", "set role matrix_role", WHO, "reset role"),
    Kind::carried("ROLE NONE", "set role matrix_role\nset role none", WHO, "reset role"),
    Kind::carried("ROLE by its name", r#"set role to "matrix_role""#, WHO, "set role to none"),
    Kind::carried(
        "SESSION AUTHORIZATION",
        "set session authorization matrix_role",
        WHO,
        "reset session authorization",
    ),
    Kind::carried(
        "SESSION AUTHORIZATION and ROLE",
        "set session authorization matrix_role\nset role matrix_group",
        WHO,
        "reset role\nset session authorization default",
    ),
    Kind::carried(
        "ROLE and then SESSION AUTHORIZATION",
        "set role matrix_role\nset session authorization matrix_group",
        WHO,
        "reset session authorization",
    ),
    Kind::carried("ROLE and RESET ALL", "set role matrix_role\nreset all", WHO, "reset role"),
    // Back again.
    Kind::carried("RESET", "set work_mem = '5MB'\nreset work_mem", WORK_MEM, "reset work_mem"),
    Kind::carried(
        "RESET ALL",
        "set work_mem = '5MB'\nset timezone = 'Asia/Tokyo'\nset myapp.user_id = '42'\nreset all",
        "show work_mem\nshow timezone\nselect nullif(current_setting('myapp.user_id', true), '')",
        "reset all",
    ),
    Kind::carried("TO DEFAULT", "set work_mem = '5MB'\nset work_mem to default", WORK_MEM, ""),
    Kind::carried("RESET of some", "set work_mem = '5MB'\nset geqo = off\nreset geqo", GEQO_TOO, "reset all"),
    // Functions.
    Kind::carried(
        "set_config",
        "select set_config('work_mem', '5MB', false)",
        WORK_MEM,
        "select set_config('work_mem', null, false)",
    ),
    Kind::carried(
        "set_config, local",
        "select set_config('work_mem', '5MB', true)",
        WORK_MEM,
        "reset work_mem",
    ),
    Kind::carried(
        "set_config with parameters",
        "select set_config($1, $2, false) | work_mem | 5MB",
        WORK_MEM,
        "reset work_mem",
    ),
    Kind::carried(
        "set_config with parameters, local",
        "select set_config($1, $2, true) | myapp.user_id | 42",
        CUSTOM,
        "reset work_mem",
    ),
    Kind::carried(
        "set_config with a parameter for local",
        "select set_config($1, $2, $3) | myapp.user_id | 42 | false",
        CUSTOM,
        "reset myapp.user_id",
    ),
    Kind::carried(
        "set_config twice in one",
        "select set_config('myapp.user_id', '42', false), set_config('work_mem', '5MB', false)",
        "show work_mem\nselect nullif(current_setting('myapp.user_id', true), '')",
        "reset all",
    ),
    Kind::pins(
        "set_config of what is computed",
        "select set_config('work_mem', (2 + 3) || 'MB', false)",
        WORK_MEM,
        "reset all",
    ),
    Kind::carried(
        "set_config as pg_dump has it",
        "select set_config(name, '5MB', false) from pg_settings where name = 'work_mem'",
        WORK_MEM,
        "reset work_mem",
    ),
    Kind::pins(
        "set_config with rows",
        "select set_config(name, '5MB', false) from (values ('work_mem'), ('temp_buffers')) v (name)",
        "show work_mem\nshow temp_buffers",
        "reset all",
    ),
    Kind::carried(
        "a reported setting set out of sight",
        "select matrix.hidden_zone()",
        ZONE,
        "reset timezone",
    ),
    Kind::pins("SET in DO", "do $$ begin set work_mem = '5MB'; end $$", WORK_MEM, "reset all"),
    Kind::pins(
        "set_config in DO",
        "do $$ begin perform set_config('work_mem', '5MB', false); end $$",
        WORK_MEM,
        "reset all",
    ),
    Kind::pins("SET in CALL", "call matrix.sets()", WORK_MEM, "reset all"),
    // At startup.
    Kind::carried("options", "set work_mem = '6MB'\nreset work_mem", STARTED, "set geqo = on\nreset all")
        .startup(&[("options", r"-c work_mem=5MB --geqo=off -c application_name=a\ b")]),
    Kind::carried("startup parameters", "set work_mem = '6MB'", STARTED, "reset all").startup(&[
        ("work_mem", "5MB"),
        ("geqo", "off"),
        ("application_name", "started"),
    ]),
    Kind::carried("startup of a custom setting", "set myapp.user_id = '42'", CUSTOM, "reset myapp.user_id")
        .startup(&[("options", "-c myapp.user_id=7")]),
    Kind::carried("startup of a role", "reset role", WHO, "reset all")
        .startup(&[("options", "-c role=matrix_role")]),
    Kind::carried("startup of a role as a parameter", "reset role\nset work_mem = '5MB'", WHO, "reset role")
        .startup(&[("role", "matrix_role")]),
    Kind::carried("DISCARD ALL after startup", "set work_mem = '6MB'\ndiscard all", STARTED, "discard all")
        .startup(&[("options", "-c work_mem=5MB -c geqo=off")])
        .alone(),
];

const BYTEA: &str = "show bytea_output\nselect '\\x00ff'::bytea";
const CUSTOM: &str = "select nullif(current_setting('myapp.user_id', true), '')";
const DATE: &str = "show datestyle\nselect '2026-02-01'::date, '03/04/2026'::date - '2026-01-01'::date";
const EFFECTIVE: &str = "show effective_io_concurrency";
const ENCODING: &str = "show client_encoding\nselect chr(246)";
const GEQO_TOO: &str = "show work_mem\nshow geqo";
const ISOLATION: &str = "show default_transaction_isolation\nshow transaction_isolation\n\
     show default_transaction_read_only\nshow transaction_deferrable";
const SEARCH_PATH: &str = "show search_path\nselect current_schemas(false)";
const STARTED: &str = "show work_mem\nshow geqo\nshow application_name";
const WHO: &str = "select current_user, session_user, current_setting('role')";
const WORK_MEM: &str = "show work_mem";
const ZONE: &str = "show timezone\nselect '2026-01-01 00:00+00'::timestamptz::text";
