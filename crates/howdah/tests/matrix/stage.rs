//! Where the matrix plays: one PostgreSQL, one pooler, and for each thread two databases of its own.
//!
//! One database is behind the pooler, one is for the direct runs: locks and temporary objects of the one are not
//! in the way of the other.

use testkit::{Howdah, Postgres, Raw, Version};

use crate::oracle::{BINARY, USER};

/// How many threads play.
pub const LANES: usize = 8;

pub struct Stage {
    pub server: &'static Postgres,
    pub howdah: Howdah,
}

impl Stage {
    pub fn new() -> Stage {
        let server = Postgres::shared(Version::wanted());
        server.sql("create role matrix_role; create role matrix_group; grant matrix_group to matrix_role");
        server.create_database(GROUND, USER);
        server.session(GROUND).sql(SCHEMA);
        let mut options = Howdah::new(BINARY)
            .setting("max_client_conn", "500")
            .setting("server_login_retry", "0.1")
            .setting("workers", "2")
            .user(USER, "");
        for lane in 0..LANES {
            for name in [pooled(lane), direct(lane)] {
                server.sql(&format!("create database {name} template {GROUND}"));
            }
            let to = server.connection(&pooled(lane));
            for (entry, more) in
                [("one", "pool_size=1"), ("two", "pool_size=2"), ("session", "pool_size=5 pool_mode=session")]
            {
                options = options.database(&format!("{entry}_{lane}"), &format!("{to} {more}"));
            }
        }
        Stage { server, howdah: options.start() }
    }

    /// A superuser's session in one of the databases, past the pooler.
    pub fn admin(&self, database: &str) -> Raw {
        self.server.session(database)
    }
}

/// The database behind the pooler.
pub fn pooled(lane: usize) -> String {
    format!("pooled_{lane}")
}

/// The database of the direct runs.
pub fn direct(lane: usize) -> String {
    format!("direct_{lane}")
}

const GROUND: &str = "matrix_ground";

const SCHEMA: &str = "create schema matrix; grant usage on schema matrix to public;
create sequence matrix.counter;
select lo_from_bytea(424242, 'abc');
create table matrix.plain (id serial, v text);
create table matrix.modern (id int generated always as identity, v text);
create table matrix.bare (id int);
create function matrix.hidden_zone() returns text language sql as
    $$ select set_config('timezone', 'Asia/Tokyo', false) $$;
create procedure matrix.sets() language plpgsql as $$ begin set work_mem = '5MB'; end $$;
create procedure matrix.makes() language plpgsql as $$ begin create temp table t (n int); end $$;";

/// Before each run: what outlives sessions is as it was.
pub const AS_IT_WAS: &str = "select setval('matrix.counter', 1, false), \
     setval('matrix.plain_id_seq', 1, false), setval('matrix.modern_id_seq', 1, false)";
