//! Who may enter the console, and as what.

/// What a user of the console may do. A greater role may all that a smaller one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Stats,
    /// Look and act.
    Admin,
}

/// What decides about entering.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// The user's name.
    pub user: &'a str,
    /// `admin_users`.
    pub admin_users: &'a [String],
    /// `stats_users`.
    pub stats_users: &'a [String],
    /// The client came over a Unix socket and its process runs under the pooler's own user id.
    pub own_user: bool,
    /// `auth_type` is `any`: nobody proves who he is.
    pub auth_any: bool,
}

impl Login<'_> {
    /// The role that the user gets once he has proved who he is; `None` is `not allowed`.
    pub fn role(self) -> Option<Role> {
        let listed = |names: &[String]| names.iter().any(|name| name == self.user);
        if listed(self.admin_users) || self.needs_no_proof() {
            Some(Role::Admin)
        } else if self.auth_any || listed(self.stats_users) {
            Some(Role::Stats)
        } else {
            None
        }
    }

    /// Whether the kernel has already proved it: the user `pgbouncer` of the pooler's own user id.
    pub fn needs_no_proof(self) -> bool {
        self.own_user && self.user == "pgbouncer"
    }
}
