//! Answers as Patroni gives them, and as nobody should.

mod answers;
mod rosters;

use crate::{Member, Report, Tags};

/// `n1@10.0.0.1:5432 leader/running [tags]`, between semicolons; then what is said of the whole.
pub(crate) fn shown(report: &Report) -> String {
    let mut parts: Vec<String> = report.members.iter().map(line).collect();
    if report.is_paused {
        parts.push("paused".to_owned());
    }
    parts.extend(report.switchover.clone());
    parts.join("; ")
}

fn line(member: &Member) -> String {
    let tags = if member.tags == Tags::default() { String::new() } else { format!(" [{}]", member.tags) };
    let Member { name, host, port, role, state, .. } = member;
    format!("{name}@{host}:{port} {role}/{state}{tags}")
}
