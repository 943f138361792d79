//! Constant expressions whose value the macro must know: integers, and the constants of the module.

use std::collections::HashMap;

use syn::{BinOp, Expr, ExprLit, Ident, Item, Lit};

use super::keys::ungrouped;

/// The constants of the module, each with its value.
#[derive(Default)]
pub(super) struct Constants(HashMap<Ident, Expr>);

/// Maximum depth of references between constants.
const DEPTH: u32 = 64;
/// Maximum number of expressions to evaluate for a value: each reference evaluates the constant
/// again.
const STEPS: u32 = 10_000;

impl Constants {
    pub(super) fn of(items: &[Item]) -> Self {
        let constants = items.iter().filter_map(|item| match item {
            Item::Const(item) => Some((item.ident.clone(), (*item.expr).clone())),
            _ => None,
        });
        Self(constants.collect())
    }

    /// Returns the value of `expr`, if the macro can evaluate it.
    pub(super) fn value(&self, expr: &Expr) -> Option<i128> {
        let mut steps = STEPS;
        self.evaluate(expr, DEPTH, &mut steps)
    }

    fn evaluate(&self, expr: &Expr, depth: u32, steps: &mut u32) -> Option<i128> {
        let depth = depth.checked_sub(1)?;
        *steps = steps.checked_sub(1)?;
        match ungrouped(expr) {
            Expr::Lit(ExprLit { lit: Lit::Int(lit), .. }) => lit.base10_parse().ok(),
            Expr::Path(path) => self.evaluate(self.0.get(path.path.get_ident()?)?, depth, steps),
            Expr::Cast(cast) => self.evaluate(&cast.expr, depth, steps),
            Expr::Binary(binary) => {
                let left = self.evaluate(&binary.left, depth, steps)?;
                let right = self.evaluate(&binary.right, depth, steps)?;
                match binary.op {
                    BinOp::Add(_) => left.checked_add(right),
                    BinOp::Sub(_) => left.checked_sub(right),
                    BinOp::Mul(_) => left.checked_mul(right),
                    BinOp::Div(_) => left.checked_div(right),
                    BinOp::Rem(_) => left.checked_rem(right),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn integers_and_constants_of_module() {
        let constants = Constants::of(&[
            parse_quote!(
                const BASE: u8 = 2;
            ),
            parse_quote!(
                const TOP: u8 = 2 * BASE + (9 - 1) / 2;
            ),
            parse_quote!(
                const ROUND: u8 = ROUND;
            ),
        ]);
        let value = |expr| constants.value(&expr);
        assert_eq!(value(parse_quote!(TOP as u8 % 5)), Some(3));
        assert_eq!(value(parse_quote!(ROUND)), None);
        assert_eq!(value(parse_quote!(1 / 0)), None);
        assert_eq!(value(parse_quote!(other::BASE)), None);
        assert_eq!(value(parse_quote!(max(1, 2))), None);
    }

    #[test]
    fn constants_that_double_each_other_end() {
        let name = |number| quote::format_ident!("C{number}");
        let mut items: Vec<Item> = vec![parse_quote!(
            const C0: i64 = 1;
        )];
        items.extend((1..60).map(|number| {
            let (name, last) = (name(number), name(number - 1));
            parse_quote!(
                const #name: i64 = #last + #last;
            )
        }));
        let constants = Constants::of(&items);
        assert_eq!(constants.value(&parse_quote!(C10)), Some(1024));
        assert_eq!(constants.value(&parse_quote!(C59)), None);
    }
}
