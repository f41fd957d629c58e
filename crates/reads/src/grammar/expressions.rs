//! Expressions: the functions, operators and types in them.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AArrayExpr, AExpr, AExprKind, AIndices, AIndirection, BoolExpr, BooleanTest, CaseExpr, CaseWhen,
    CoalesceExpr, CollateClause, ColumnDef, ColumnRef, FuncCall, GroupingFunc, GroupingSet, MinMaxExpr,
    NamedArgExpr, Node, NullTest, RowExpr, SortBy, SubLink, TypeCast, TypeName, WindowDef,
};

use super::{Reader, Walked, functions, name_of};
use crate::names::Name;
use crate::verdict::Why;

impl Reader {
    pub(super) fn expression(&mut self, node: &NodeEnum) -> Walked {
        match node {
            NodeEnum::ParamRef(_)
            | NodeEnum::AConst(_)
            | NodeEnum::AStar(_)
            | NodeEnum::Integer(_)
            | NodeEnum::Float(_)
            | NodeEnum::String(_)
            // The user, the database, the time: the same on every server, but for the clock.
            | NodeEnum::SqlvalueFunction(_) => Ok(()),
            NodeEnum::ColumnRef(column) => self.column(column),
            NodeEnum::FuncCall(call) => self.call(call),
            NodeEnum::AExpr(expression) => self.operation(expression),
            NodeEnum::TypeCast(cast) => {
                let TypeCast { arg, type_name, location: _ } = &**cast;
                self.type_name(type_name.as_ref())?;
                self.maybe(arg)
            }
            NodeEnum::AIndirection(indirection) => {
                let AIndirection { arg, indirection } = &**indirection;
                self.indirection(indirection)?;
                self.maybe(arg)
            }
            NodeEnum::SubLink(link) => self.sub_link(link),
            NodeEnum::CaseExpr(case) => {
                let CaseExpr { xpr: _, casetype: _, casecollid: _, arg, args, defresult, location: _ } = &**case;
                self.maybe(arg)?;
                self.all(args)?;
                self.maybe(defresult)
            }
            NodeEnum::CaseWhen(when) => {
                let CaseWhen { xpr: _, expr, result, location: _ } = &**when;
                self.maybe(expr)?;
                self.maybe(result)
            }
            NodeEnum::SortBy(sort) => self.sort(sort),
            NodeEnum::WindowDef(window) => self.window(window),
            NodeEnum::ColumnDef(column) => self.column_definition(column),
            simple => self.simple(simple),
        }
    }

    /// What has parts and nothing of its own.
    fn simple(&mut self, node: &NodeEnum) -> Walked {
        match node {
            NodeEnum::BoolExpr(expression) => {
                let BoolExpr { xpr: _, boolop: _, args, location: _ } = &**expression;
                self.all(args)
            }
            NodeEnum::NullTest(test) => {
                let NullTest { xpr: _, arg, nulltesttype: _, argisrow: _, location: _ } = &**test;
                self.maybe(arg)
            }
            NodeEnum::BooleanTest(test) => {
                let BooleanTest { xpr: _, arg, booltesttype: _, location: _ } = &**test;
                self.maybe(arg)
            }
            NodeEnum::CoalesceExpr(coalesce) => {
                let CoalesceExpr { xpr: _, coalescetype: _, coalescecollid: _, args, location: _ } =
                    &**coalesce;
                self.all(args)
            }
            NodeEnum::MinMaxExpr(expression) => {
                let MinMaxExpr {
                    xpr: _,
                    minmaxtype: _,
                    minmaxcollid: _,
                    inputcollid: _,
                    op: _,
                    args,
                    location: _,
                } = &**expression;
                self.all(args)
            }
            NodeEnum::RowExpr(row) => {
                let RowExpr { xpr: _, args, row_typeid: _, row_format: _, colnames: _, location: _ } = &**row;
                self.all(args)
            }
            NodeEnum::AArrayExpr(array) => {
                let AArrayExpr { elements, location: _, list_start: _, list_end: _ } = array;
                self.all(elements)
            }
            NodeEnum::CollateClause(collate) => {
                let CollateClause { arg, collname: _, location: _ } = &**collate;
                self.maybe(arg)
            }
            NodeEnum::NamedArgExpr(named) => {
                let NamedArgExpr { xpr: _, arg, name: _, argnumber: _, location: _ } = &**named;
                self.maybe(arg)
            }
            NodeEnum::GroupingFunc(grouping) => {
                let GroupingFunc { xpr: _, args, refs: _, agglevelsup: _, location: _ } = &**grouping;
                self.all(args)
            }
            NodeEnum::GroupingSet(set) => {
                let GroupingSet { kind: _, content, location: _ } = set;
                self.all(content)
            }
            _ => Err(Why::Syntax),
        }
    }

    fn column(&mut self, column: &ColumnRef) -> Walked {
        let ColumnRef { fields, location: _ } = column;
        match fields.as_slice() {
            // One name is a column or a table's row; behind a point it may be a function.
            [_] => Ok(()),
            [_, behind @ ..] => self.indirection(behind),
            [] => Err(Why::Syntax),
        }
    }

    /// `.name`, `.*` and `[1:2]` behind something.
    pub(super) fn indirection(&mut self, parts: &[Node]) -> Walked {
        for part in parts {
            match &part.node {
                Some(NodeEnum::String(name)) => {
                    self.needs.fields.insert(name.sval.clone());
                }
                Some(NodeEnum::AStar(_)) => {}
                Some(NodeEnum::AIndices(indices)) => {
                    let AIndices { is_slice: _, lidx, uidx } = &**indices;
                    self.maybe(lidx)?;
                    self.maybe(uidx)?;
                }
                _ => return Err(Why::Syntax),
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &FuncCall) -> Walked {
        let FuncCall {
            funcname,
            args,
            agg_order,
            agg_filter,
            over,
            agg_within_group: _,
            agg_star: _,
            agg_distinct: _,
            func_variadic: _,
            funcformat: _,
            location: _,
        } = call;
        let mut name = name_of(funcname)?;
        if let Some(why) = functions::known(&name.name, self.origin) {
            return Err(why);
        }
        if name == Name::of("pg_catalog", "extract") {
            // Before PostgreSQL 14 it has this name only.
            name.name = "date_part".to_owned();
        }
        self.needs.functions.insert(name);
        self.all(args)?;
        self.all(agg_order)?;
        self.maybe(agg_filter)?;
        over.as_deref().map_or(Ok(()), |window| self.window(window))
    }

    fn operation(&mut self, expression: &AExpr) -> Walked {
        let AExpr { kind, name, lexpr, rexpr, location: _, rexpr_list_start: _, rexpr_list_end: _ } =
            expression;
        match AExprKind::try_from(*kind) {
            Ok(
                AExprKind::AexprBetween
                | AExprKind::AexprNotBetween
                | AExprKind::AexprBetweenSym
                | AExprKind::AexprNotBetweenSym,
            ) => self.needs.operators.extend(["<=", ">=", "<", ">"].map(Name::bare)),
            Ok(
                AExprKind::AexprOp
                | AExprKind::AexprOpAny
                | AExprKind::AexprOpAll
                | AExprKind::AexprDistinct
                | AExprKind::AexprNotDistinct
                | AExprKind::AexprNullif
                | AExprKind::AexprIn
                | AExprKind::AexprLike
                | AExprKind::AexprIlike
                | AExprKind::AexprSimilar,
            ) => {
                self.needs.operators.insert(name_of(name)?);
            }
            _ => return Err(Why::Syntax),
        }
        self.maybe(lexpr)?;
        self.maybe(rexpr)
    }

    fn sub_link(&mut self, link: &SubLink) -> Walked {
        let SubLink { xpr: _, sub_link_type: _, sub_link_id: _, testexpr, oper_name, subselect, location: _ } =
            link;
        if !oper_name.is_empty() {
            self.needs.operators.insert(name_of(oper_name)?);
        }
        self.maybe(testexpr)?;
        self.maybe(subselect)
    }

    fn sort(&mut self, sort: &SortBy) -> Walked {
        let SortBy { node, sortby_dir: _, sortby_nulls: _, use_op, location: _ } = sort;
        if !use_op.is_empty() {
            self.needs.operators.insert(name_of(use_op)?);
        }
        self.maybe(node)
    }

    fn window(&mut self, window: &WindowDef) -> Walked {
        let WindowDef {
            name: _,
            refname: _,
            partition_clause,
            order_clause,
            frame_options: _,
            start_offset,
            end_offset,
            location: _,
        } = window;
        self.all(partition_clause)?;
        self.all(order_clause)?;
        self.maybe(start_offset)?;
        self.maybe(end_offset)
    }

    /// Of a function in FROM: a name and a type.
    fn column_definition(&mut self, column: &ColumnDef) -> Walked {
        if column.raw_default.is_some() || column.cooked_default.is_some() || !column.constraints.is_empty() {
            return Err(Why::Syntax);
        }
        self.type_name(column.type_name.as_ref())
    }

    fn type_name(&mut self, type_name: Option<&TypeName>) -> Walked {
        let Some(type_name) = type_name else { return Err(Why::Syntax) };
        let TypeName {
            names,
            type_oid: _,
            setof,
            pct_type,
            typmods,
            typemod: _,
            array_bounds: _,
            location: _,
        } = type_name;
        if *setof || *pct_type {
            return Err(Why::Syntax);
        }
        self.needs.types.insert(name_of(names)?);
        self.all(typmods)
    }
}
