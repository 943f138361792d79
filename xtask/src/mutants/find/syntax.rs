//! Queries on a piece of syntax.

use std::ops::Range;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, BinOp, Expr, Meta, Token};

pub(crate) fn range(node: &impl Spanned) -> Range<usize> {
    node.span().byte_range()
}

/// Returns whether an item exists only for tests or models.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    let mut conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.any(|attribute| attribute.parse_args().is_ok_and(|condition| implies_tests(&condition)))
}

fn implies_tests(condition: &Meta) -> bool {
    match condition {
        Meta::Path(name) => name.is_ident("loom") || name.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            parts.is_ok_and(|parts| parts.iter().any(implies_tests))
        }
        _ => false,
    }
}

pub(super) fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

pub(super) fn is_assignment(op: &BinOp) -> bool {
    use BinOp::{AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, ShlAssign, ShrAssign, SubAssign};
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Returns the name of the called function.
pub(super) fn called(function: &Expr) -> Option<String> {
    match function {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// Returns whether an expression that yields a block's value is there for its effect.
pub(super) fn is_effect(expr: &Expr) -> bool {
    let name = match expr {
        Expr::MethodCall(call) => Some(call.method.to_string()),
        Expr::Call(call) => called(&call.func),
        _ => None,
    };
    let effects = ["wake", "notify", "fence", "store", "signal", "unlock", "release", "set_"];
    name.is_some_and(|name| effects.iter().any(|prefix| name.starts_with(prefix)))
}
