//! The replacements for each kind of expression and statement.

use syn::{BinOp, Expr, Lit, Stmt, UnOp};

use super::Finder;
use super::syntax::{has_let, is_assignment, is_effect, range};
use crate::mutants::mutation::Form;

impl Finder<'_> {
    pub(super) fn ordering(&mut self, expr: &Expr, operation: Operation) {
        let Expr::Path(path) = expr else { return };
        let mut segments = path.path.segments.iter().rev();
        let (Some(order), Some(of)) = (segments.next(), segments.next()) else { return };
        if of.ident != "Ordering" || !self.seen.insert(range(expr).start) {
            return;
        }
        let at = range(&order.ident);
        for weak in weaker(&order.ident.to_string(), operation) {
            let whole = range(expr);
            let replacement = format!("{}{weak}", &self.text[whole.start..at.start]);
            self.replace(whole, replacement);
        }
    }

    /// Replaces a constant in a comparison, an arithmetic operation or a lookup by one more and one
    /// less.
    pub(super) fn constant(&mut self, expr: &Expr, more: bool, less: bool) {
        let at = range(expr);
        match expr {
            Expr::Lit(literal) => {
                let Lit::Int(number) = &literal.lit else { return };
                let Ok(value) = number.base10_parse::<u128>() else { return };
                if more {
                    self.replace(at.clone(), format!("{}{}", value + 1, number.suffix()));
                }
                if less && value > 0 {
                    self.replace(at, format!("{}{}", value - 1, number.suffix()));
                }
            }
            Expr::Path(path) => {
                let Some(last) = path.path.segments.last() else { return };
                let name = last.ident.to_string();
                let is_constant = name.len() > 1 && !name.contains(|c: char| c.is_ascii_lowercase());
                if is_constant && more {
                    self.replace(at.clone(), format!("({} + 1)", self.text_of(expr)));
                }
                if is_constant && less {
                    self.replace(at, format!("({} - 1)", self.text_of(expr)));
                }
            }
            _ => {}
        }
    }

    pub(super) fn negate(&mut self, condition: &Expr) {
        match condition {
            // The comparison operator itself is mutated instead.
            Expr::Binary(binary) if matches!(binary.op, BinOp::Eq(_) | BinOp::Ne(_)) => {}
            Expr::Binary(binary) if has_let(condition) => {
                self.negate(&binary.left);
                self.negate(&binary.right);
            }
            Expr::Let(_) | Expr::Lit(_) => {}
            Expr::Paren(inner) => self.negate(&inner.expr),
            Expr::Unary(not) if matches!(not.op, UnOp::Not(_)) => {
                let inner = self.text_of(&*not.expr).to_owned();
                self.replace(range(condition), inner);
            }
            _ => {
                let negated = format!("!({})", self.text_of(condition));
                self.replace(range(condition), negated);
            }
        }
    }

    /// Mutates a statement that has an effect.
    pub(super) fn statement(&mut self, statement: &Stmt, is_last: bool) {
        let dropped = match statement {
            Stmt::Expr(Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_), Some(_)) => true,
            Stmt::Expr(Expr::Binary(binary), Some(_)) => is_assignment(&binary.op),
            Stmt::Expr(Expr::Return(returned), _) => {
                if let Some(effect) = returned.expr.as_deref().filter(|expr| is_effect(expr)) {
                    self.replace(range(effect), "()");
                }
                true
            }
            Stmt::Expr(effect, None) if is_last && is_effect(effect) => {
                self.replace(range(effect), "()");
                false
            }
            _ => false,
        };
        if dropped {
            self.add(range(statement), String::new(), Form::Statement);
        }
    }
}

/// The operation of an ordering, which decides which orderings are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Load,
    Store,
    ReadModifyWrite,
    Fence,
    /// A variable, or a function of the package.
    Unknown,
}

impl Operation {
    /// Returns the operation for the argument at this position of `count`, by the name of the
    /// called function.
    pub(super) fn of(name: &str, at: usize, count: usize) -> Self {
        match name {
            "load" => Self::Load,
            "store" => Self::Store,
            "fence" => Self::Fence,
            "fetch_update" if at == 1 => Self::Load,
            // The ordering of the failure follows that of the success.
            "compare_exchange" | "compare_exchange_weak" if at + 1 == count => Self::Load,
            "swap" | "compare_exchange" | "compare_exchange_weak" => Self::ReadModifyWrite,
            name if name.starts_with("fetch_") => Self::ReadModifyWrite,
            _ => Self::Unknown,
        }
    }
}

/// Returns the orderings one step below `order`. A fence that orders nothing is not a fence: it is
/// dropped as a statement instead.
pub(super) fn weaker(order: &str, operation: Operation) -> &'static [&'static str] {
    use Operation::{Fence, Load, ReadModifyWrite, Store, Unknown};
    match (order, operation) {
        ("SeqCst", Load) => &["Acquire"],
        ("SeqCst", Store) => &["Release"],
        ("SeqCst", ReadModifyWrite | Fence | Unknown) => &["AcqRel"],
        ("AcqRel", _) => &["Acquire", "Release"],
        ("Acquire" | "Release", Fence) => &[],
        ("Acquire" | "Release", _) => &["Relaxed"],
        _ => &[],
    }
}
