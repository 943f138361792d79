//! References that leave the critical section of their resource.
//!
//! The compiler reports them in terms of lifetimes, and does not suggest a copy.

use std::collections::HashSet;

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, ExprAssign, ExprClosure, Ident, Pat, Stmt, Type, TypeReference, UnOp};

use super::body::bound_names;
use crate::parse::ungrouped;

/// A part of a critical section that keeps a reference to the resource.
pub(super) struct Escape<'e> {
    pub(super) place: &'e Expr,
    /// The code that returns or assigns a copy instead.
    pub(super) remedy: String,
}

/// Returns the references to a resource of type `ty` that the closure of its critical section
/// returns or assigns to a variable outside.
///
/// A reference in the resource may leave it, and the compiler dereferences to it implicitly. So a
/// resource that is a reference itself is not checked.
pub(super) fn escapes<'e>(closure: &'e ExprClosure, ty: Option<&Type>) -> Vec<Escape<'e>> {
    let mut found = Vec::new();
    let [Pat::Ident(parameter)] = closure.inputs.iter().collect::<Vec<_>>()[..] else { return found };
    let Some(ty) = ty.filter(|ty| !matches!(ty, Type::Reference(_))) else { return found };
    let bound = bound_names(&closure.body);
    let name = &parameter.ident;
    if bound.contains(name) {
        return found;
    }
    let retained = Retained { name, ty };
    let value = last(&closure.body);
    if let Some(copy) = retained.copy(value) {
        found.push(Escape { place: value, remedy: format!("return a copy: `|{name}| {copy}`") });
    }
    Assignments { retained, bound: &bound, found: &mut found }.visit_expr(&closure.body);
    found
}

/// Returns the value of a block, or the expression itself.
fn last(mut value: &Expr) -> &Expr {
    while let Expr::Block(block) = value
        && let Some(Stmt::Expr(last, None)) = block.block.stmts.last()
    {
        value = last;
    }
    ungrouped(value)
}

/// The parameter of a critical section.
#[derive(Clone, Copy)]
struct Retained<'a> {
    name: &'a Ident,
    /// The type of the resource.
    ty: &'a Type,
}

impl Retained<'_> {
    /// Returns the code of a value without references to the resource, if `value` certainly
    /// contains one.
    fn copy(self, value: &Expr) -> Option<String> {
        let name = self.name;
        match ungrouped(value) {
            Expr::Path(path) if path.path.is_ident(name) => Some(format!("{name}.clone()")),
            Expr::Reference(reference) => self.part(&reference.expr).map(|part| format!("{part}.clone()")),
            Expr::Call(call) => {
                let Expr::Path(function) = &*call.func else { return None };
                let wrapper = ["Some", "Ok", "Err"].into_iter().find(|name| function.path.is_ident(name))?;
                let copy = call.args.iter().find_map(|arg| self.copy(arg))?;
                Some(format!("{wrapper}({copy})"))
            }
            Expr::MethodCall(call) if self.is_name(&call.receiver) => {
                let borrows = is_collection(self.ty) && BORROWING.iter().any(|method| call.method == method);
                borrows.then(|| format!("{name}.clone()"))
            }
            _ => None,
        }
    }

    /// Returns the code of the resource or of an element, if `place` is one. The type of a field is
    /// unknown: it may be a reference.
    fn part(self, place: &Expr) -> Option<String> {
        let name = self.name;
        match ungrouped(place) {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) && self.is_name(&unary.expr) => {
                Some(name.to_string())
            }
            Expr::Index(index) if self.is_name(&index.expr) && !holds_references(self.ty) => {
                Some(format!("{name}[{}]", index.index.to_token_stream()))
            }
            _ => None,
        }
    }

    fn is_name(self, expr: &Expr) -> bool {
        matches!(ungrouped(expr), Expr::Path(path) if path.path.is_ident(self.name))
    }
}

/// Methods of the standard library's collections whose results borrow from them.
const BORROWING: [&str; 14] = [
    "as_mut",
    "as_ref",
    "as_slice",
    "as_str",
    "first",
    "get",
    "get_mut",
    "iter",
    "iter_mut",
    "keys",
    "last",
    "peek",
    "values",
    "values_mut",
];

/// Returns whether a type contains a reference, judging by its code.
fn holds_references(ty: &Type) -> bool {
    struct References(bool);
    impl<'ast> Visit<'ast> for References {
        fn visit_type_reference(&mut self, _: &'ast TypeReference) {
            self.0 = true;
        }
    }
    let mut references = References(false);
    references.visit_type(ty);
    references.0
}

fn is_collection(ty: &Type) -> bool {
    const NAMES: [&str; 8] =
        ["BTreeMap", "BTreeSet", "BinaryHeap", "HashMap", "HashSet", "Option", "Vec", "VecDeque"];
    match ty {
        Type::Array(_) => true,
        Type::Path(path) => {
            let last = path.path.segments.last();
            last.is_some_and(|last| NAMES.iter().any(|name| last.ident == name))
        }
        _ => false,
    }
}

/// Finds assignments to variables outside of the critical section.
struct Assignments<'a, 'e> {
    retained: Retained<'a>,
    /// The variables of the critical section.
    bound: &'a HashSet<Ident>,
    found: &'a mut Vec<Escape<'e>>,
}

impl<'e> Visit<'e> for Assignments<'_, 'e> {
    fn visit_expr_assign(&mut self, assign: &'e ExprAssign) {
        if let Expr::Path(target) = &*assign.left
            && let Some(target) = target.path.get_ident()
            && !self.bound.contains(target)
            && let Some(copy) = self.retained.copy(&assign.right)
        {
            let remedy = format!("assign a copy: `{target} = {copy}`");
            self.found.push(Escape { place: &assign.right, remedy });
        }
        visit::visit_expr_assign(self, assign);
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors};

    /// Returns the errors in a critical section with this closure.
    fn in_section(closure: TokenStream) -> Vec<String> {
        errors(quote! {
            #[shared] struct Shared { list: Vec<u8>, text: &'static str }
            #[task(shared = [list, text])]
            fn t(mut cx: t::Context) { let mut out = None; cx.shared.list.lock(#closure); }
        })
    }

    #[test]
    fn references_that_leave_their_section() {
        for (closure, remedy) in [
            (quote!(|s| s), "return a copy: `|s| s.clone()`"),
            (
                quote!(|s| {
                    s.push(1);
                    &mut *s
                }),
                "return a copy: `|s| s.clone()`",
            ),
            (quote!(|s| Some(s)), "return a copy: `|s| Some(s.clone())`"),
            (quote!(|s| Ok(&*s)), "return a copy: `|s| Ok(s.clone())`"),
            (quote!(|s| &s[1]), "return a copy: `|s| s[1].clone()`"),
            (quote!(|s| s.iter()), "return a copy: `|s| s.clone()`"),
            (
                quote!(|s| {
                    out = s.first();
                }),
                "assign a copy: `out = s.clone()`",
            ),
            (
                quote!(|s| if s.is_empty() {
                    out = Some(s)
                }),
                "assign a copy: `out = Some(s.clone())`",
            ),
        ] {
            assert_one(&in_section(closure), &["only in its critical section; use it there, or", remedy]);
        }
    }

    #[test]
    fn values_may_leave_their_section() {
        for closure in [
            quote!(|s| s.clone()),
            quote!(|s| s.len()),
            quote!(|s| *s),
            quote!(|s| s.0),
            quote!(|s| &s.0),
            quote!(|s| sum(s)),
            quote!(|s| s.pop()),
            quote!(|s| {
                let s = 3;
                s
            }),
            quote!(|s| {
                let mut out = s;
                out = s;
                3
            }),
            quote!(|s| s.iter().copied().max()),
        ] {
            let text = closure.to_string();
            assert_eq!(in_section(closure), [""; 0], "{text}");
        }
    }

    #[test]
    fn resource_that_is_a_reference_may_leave() {
        let errors = errors(quote! {
            #[shared] struct Shared { text: &'static str, list: Vec<&'static str> }
            #[task(shared = [text, list])]
            fn t(mut cx: t::Context) {
                let text: &'static str = cx.shared.text.lock(|text| text);
                let text: &'static str = cx.shared.list.lock(|list| &list[0]);
            }
        });
        assert_eq!(errors, [""; 0]);
    }
}
