//! Sizes of memory. `8.mib()` and the like are evaluated here, any other expression by the
//! compiler.

use syn::{Expr, ExprLit, Lit, UnOp};

use super::keys::{Keys, ungrouped};
use crate::errors::Errors;
use crate::model::Size;

const UNITS: [(&str, usize); 2] = [("kib", 1 << 10), ("mib", 1 << 20)];

/// Minimum stack size, in bytes, as in the runtime.
const SMALLEST: usize = 64 << 10;

/// Returns the size under the key `stack`.
pub(super) fn stack(keys: &Keys, errors: &mut Errors) -> Option<Size> {
    let source = keys.expr("stack", errors)?.clone();
    let bytes = errors.take(value(&source))?;
    if bytes.is_some_and(|bytes| bytes < SMALLEST) {
        errors.at(&source, "a thread takes a stack of at least `64.kib()`");
    }
    Some(Size { bytes, source: Box::new(source) })
}

/// Returns the bytes in `source`, or `None` if only the compiler can evaluate it.
fn value(source: &Expr) -> syn::Result<Option<usize>> {
    let error = |message: String| Err(syn::Error::new_spanned(source, message));
    match ungrouped(source) {
        Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => {
            error(format!("a size needs a unit, such as `{}.kib()`", lit.base10_digits()))
        }
        Expr::Lit(_) => error("a size is an integer with a unit, such as `8.mib()`".into()),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            error("a size cannot be negative; remove the `-`".into())
        }
        Expr::MethodCall(call) if call.args.is_empty() && call.turbofish.is_none() => {
            let Expr::Lit(ExprLit { lit, .. }) = ungrouped(&call.receiver) else { return Ok(None) };
            let Lit::Int(lit) = lit else {
                return error("a size is a whole number of its unit; use `kib`".into());
            };
            let unit = call.method.to_string();
            let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                let message = format!("unknown unit `{unit}`; the units are `kib` and `mib`");
                return Err(syn::Error::new_spanned(&call.method, message));
            };
            match lit.base10_parse::<usize>()?.checked_mul(*factor) {
                Some(bytes) => Ok(Some(bytes)),
                None => error("this size does not fit into an address space".into()),
            }
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(tokens: &str) -> syn::Result<Option<usize>> {
        value(&syn::parse_str(tokens)?)
    }

    #[test]
    fn evaluates_literals_and_leaves_the_rest_to_the_compiler() {
        for (given, expected) in [("64.kib()", 65_536), ("(8).mib()", 8 << 20), ("1_024.kib()", 1 << 20)] {
            assert_eq!(bytes(given).unwrap(), Some(expected), "{given}");
        }
        for given in ["STACK", "4 * MIB", "stack()", "SIZE.get()"] {
            assert_eq!(bytes(given).unwrap(), None, "{given}");
        }
    }

    #[test]
    fn rejects_invalid_sizes() {
        for (given, words) in [
            ("8", "a size needs a unit, such as `8.kib()`"),
            ("8usize", "a size needs a unit, such as `8.kib()`"),
            ("1.5", "an integer with a unit"),
            ("\"8 MiB\"", "an integer with a unit"),
            ("1.5.mib()", "a whole number of its unit"),
            ("8.mb()", "unknown unit `mb`; the units are `kib` and `mib`"),
            ("-8.mib()", "cannot be negative"),
            ("18446744073709551615.mib()", "does not fit"),
        ] {
            let message = bytes(given).expect_err(given).to_string();
            assert!(message.contains(words), "{given}: {message}");
        }
    }
}
