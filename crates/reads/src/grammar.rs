//! A statement as PostgreSQL's own grammar reads it, and the names in it.
//!
//! The tree is walked by a list of what is known to be harmless by itself; every struct is taken apart field by field,
//! so that the compiler tells of a field that a new version of the grammar brings. All else goes to the primary. Does
//! not know the catalog.

mod functions;
mod expressions;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    CommonTableExpr, ExplainStmt, JoinExpr, Node, RangeFunction, RangeSubselect, RangeVar, ResTarget,
    SelectStmt, WithClause,
};

use crate::names::{Name, Needs};
use crate::verdict::Why;

/// The grammar is C and recurses without asking how much stack is left. What [`sql::fingerprint`] lets through is less
/// deep than this is large, by measurement; [`read`] must be called where there is as much.
pub const STACK_BYTES: usize = 64 << 20;

/// Whose text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client's.
    Client,
    /// A view's or a policy's: whoever wrote it owns the tables.
    Catalog,
}

/// The names in a statement; the text as [`sql::fingerprint::masked`] gives it.
///
/// # Errors
/// Why it goes to the primary, whatever the catalog says.
pub fn read(masked: &str) -> Result<Needs, Why> {
    read_from(masked, Origin::Client)
}

pub(crate) fn read_from(masked: &str, origin: Origin) -> Result<Needs, Why> {
    let parsed =
        pg_query::parse(masked, pg_query::ParserOptions::default()).map_err(|_| Why::Unreadable)?.protobuf;
    let mut statements = parsed.stmts.iter();
    let statement = statements.next().and_then(|raw| raw.stmt.as_deref()).ok_or(Why::Unreadable)?;
    if statements.next().is_some() {
        return Err(Why::Several);
    }
    let mut reader = Reader { needs: Needs::default(), origin };
    match &statement.node {
        Some(NodeEnum::SelectStmt(select)) => reader.select(select)?,
        Some(NodeEnum::ExplainStmt(explain)) => reader.explain(explain)?,
        _ => return Err(Why::Write),
    }
    Ok(reader.needs)
}

struct Reader {
    needs: Needs,
    origin: Origin,
}

/// Whether a part was harmless by itself.
type Walked = Result<(), Why>;

impl Reader {
    /// With ANALYZE or without: it does no more than the statement within.
    fn explain(&mut self, explain: &ExplainStmt) -> Walked {
        let ExplainStmt { query, options: _ } = explain;
        match query.as_deref().and_then(|query| query.node.as_ref()) {
            Some(NodeEnum::SelectStmt(select)) => self.select(select),
            _ => Err(Why::Write),
        }
    }

    fn select(&mut self, select: &SelectStmt) -> Walked {
        let SelectStmt {
            distinct_clause,
            into_clause,
            target_list,
            from_clause,
            where_clause,
            group_clause,
            group_distinct: _,
            having_clause,
            window_clause,
            values_lists,
            sort_clause,
            limit_offset,
            limit_count,
            limit_option: _,
            locking_clause,
            with_clause,
            op: _,
            all: _,
            larg,
            rarg,
        } = select;
        if into_clause.is_some() {
            return Err(Why::Write);
        }
        if !locking_clause.is_empty() {
            return Err(Why::Lock);
        }
        if let Some(with) = with_clause {
            self.with(with)?;
        }
        for list in [
            distinct_clause,
            target_list,
            from_clause,
            group_clause,
            window_clause,
            values_lists,
            sort_clause,
        ] {
            self.all(list)?;
        }
        for one in [where_clause, having_clause, limit_offset, limit_count] {
            self.maybe(one)?;
        }
        for side in [larg, rarg].into_iter().flatten() {
            self.select(side)?;
        }
        Ok(())
    }

    fn with(&mut self, with: &WithClause) -> Walked {
        let WithClause { ctes, recursive: _, location: _ } = with;
        self.all(ctes)
    }

    fn all(&mut self, nodes: &[Node]) -> Walked {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn maybe(&mut self, node: &Option<Box<Node>>) -> Walked {
        node.as_deref().map_or(Ok(()), |node| self.node(node))
    }

    /// A part of a query that is none of an expression.
    fn node(&mut self, node: &Node) -> Walked {
        let Some(node) = &node.node else { return Ok(()) };
        match node {
            NodeEnum::SelectStmt(select) => self.select(select),
            NodeEnum::InsertStmt(_)
            | NodeEnum::UpdateStmt(_)
            | NodeEnum::DeleteStmt(_)
            | NodeEnum::MergeStmt(_) => Err(Why::WriteWithin),
            NodeEnum::RangeVar(relation) => self.relation(relation),
            NodeEnum::RangeSubselect(subselect) => {
                let RangeSubselect { lateral: _, subquery, alias: _ } = &**subselect;
                self.maybe(subquery)
            }
            NodeEnum::RangeFunction(function) => {
                let RangeFunction {
                    lateral: _,
                    ordinality: _,
                    is_rowsfrom: _,
                    functions,
                    alias: _,
                    coldeflist,
                } = function;
                self.all(functions)?;
                self.all(coldeflist)
            }
            NodeEnum::JoinExpr(join) => {
                let JoinExpr {
                    jointype: _,
                    is_natural: _,
                    larg,
                    rarg,
                    using_clause: _,
                    join_using_alias: _,
                    quals,
                    alias: _,
                    rtindex: _,
                } = &**join;
                self.maybe(larg)?;
                self.maybe(rarg)?;
                self.maybe(quals)
            }
            NodeEnum::ResTarget(target) => {
                let ResTarget { name: _, indirection, val, location: _ } = &**target;
                self.indirection(indirection)?;
                self.maybe(val)
            }
            NodeEnum::CommonTableExpr(cte) => self.cte(cte),
            NodeEnum::List(list) => self.all(&list.items),
            expression => self.expression(expression),
        }
    }

    fn cte(&mut self, cte: &CommonTableExpr) -> Walked {
        // SEARCH only names columns; what begins with cte is not filled in before analysis.
        let CommonTableExpr { ctename, ctequery, cycle_clause, search_clause: _, .. } = cte;
        if cycle_clause.is_some() {
            return Err(Why::Syntax);
        }
        self.needs.ctes.insert(ctename.clone());
        self.maybe(ctequery)
    }

    /// What WITH calls by this name is asked for all the same: where it is hidden and where not is left to PostgreSQL.
    fn relation(&mut self, relation: &RangeVar) -> Walked {
        let RangeVar { catalogname, schemaname, relname, inh: _, relpersistence: _, alias: _, location: _ } =
            relation;
        if !catalogname.is_empty() {
            return Err(Why::Syntax);
        }
        let name = qualified(schemaname, relname)?;
        self.needs.relations.insert(name);
        Ok(())
    }
}

fn qualified(schema: &str, name: &str) -> Result<Name, Why> {
    if schema.starts_with("pg_temp") {
        return Err(Why::Temporary);
    }
    Ok(if schema.is_empty() { Name::bare(name) } else { Name::of(schema, name) })
}

/// A name that may have a schema; a database before it is not followed.
fn name_of(parts: &[Node]) -> Result<Name, Why> {
    let part = |node: &Node| match &node.node {
        Some(NodeEnum::String(string)) => Ok(string.sval.clone()),
        _ => Err(Why::Syntax),
    };
    match parts {
        [name] => Ok(Name::bare(part(name)?)),
        [schema, name] => qualified(&part(schema)?, &part(name)?),
        _ => Err(Why::Syntax),
    }
}
