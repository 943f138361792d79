//! Handlers: the functions marked `#[init]`, `#[idle]`, `#[shutdown]` and `#[task]`.

use syn::parse::{Parse, ParseStream};
use syn::{Attribute, ForeignItem, ForeignItemFn, Ident, Token};

use super::conditions::Conditions;
use super::keys::Keys;
use super::table::Key;
use super::table::Value::Other;
use super::{resources, signature};
use crate::errors::Errors;
use crate::model::{Handler, HandlerItem, Idle, Init, Role, Shutdown};

pub(super) const SHARED: Key = Key::new(
    "shared = [a, &b]",
    Other("[a, &b]"),
    "none",
    "shared resources: `a` to lock, `&b` to read without a lock (no task ever locks it; \
     `Sync`, unless all users are at one level)",
);

pub(super) const LOCAL: Key = Key::new(
    "local = [c, d: T = value]",
    Other("[x, y: <type> = <expression>]"),
    "none",
    "local resources: `c` from the struct, or `d` declared in place, created at the start of \
     each run",
);

const INIT_KEYS: &[Key] = &[LOCAL];
/// Also of `#[shutdown]`.
const IDLE_KEYS: &[Key] = &[SHARED, LOCAL];

/// A function with a role's attribute.
pub(super) struct Marked<'a> {
    pub(super) attr: Attribute,
    /// The function, without that attribute.
    pub(super) item: HandlerItem,
    /// Conditions of the entries of its lists.
    pub(super) conditions: &'a Conditions,
}

pub(super) fn init(marked: Marked<'_>, errors: &mut Errors) -> Init {
    let keys = Keys::of(&marked.attr, INIT_KEYS, errors);
    Init { handler: handler(Role::Init, marked, &keys, errors) }
}

pub(super) fn idle(marked: Marked<'_>, errors: &mut Errors) -> Idle {
    let keys = Keys::of(&marked.attr, IDLE_KEYS, errors);
    Idle { handler: handler(Role::Idle, marked, &keys, errors) }
}

pub(super) fn shutdown(marked: Marked<'_>, errors: &mut Errors) -> Shutdown {
    let keys = Keys::of(&marked.attr, IDLE_KEYS, errors);
    Shutdown { handler: handler(Role::Shutdown, marked, &keys, errors) }
}

/// Parses the part that all roles have in common, from the function itself and the lists in its
/// attribute.
pub(super) fn handler(role: Role, marked: Marked<'_>, keys: &Keys, errors: &mut Errors) -> Handler {
    let Marked { item, conditions, .. } = marked;
    let sig = match &item {
        HandlerItem::Defined(item) => &item.sig,
        HandlerItem::Extern(item) => &item.sig,
    };
    let (context, args) = signature::parameters(sig, errors);
    let shared = keys.list("shared", errors).map(|list| resources::shared_list(list, conditions, errors));
    let locals = keys.list("local", errors).map(|list| resources::local_list(list, conditions, errors));
    Handler {
        ident: sig.ident.clone(),
        role,
        context,
        args,
        shared: shared.unwrap_or_default(),
        locals: locals.unwrap_or_default(),
        item,
    }
}

/// Returns the function that an item of an `extern` block declares, if any.
pub(crate) fn foreign_fn(item: &ForeignItem) -> Option<ForeignItemFn> {
    match item {
        ForeignItem::Fn(item) => Some(item.clone()),
        ForeignItem::Verbatim(tokens) => syn::parse2(tokens.clone()).ok().map(|SafeFn(item)| item),
        _ => None,
    }
}

/// `safe fn name(..);`, for which syn has no node.
struct SafeFn(ForeignItemFn);

impl Parse for SafeFn {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let safe: Ident = input.parse()?;
        if safe != "safe" {
            return Err(syn::Error::new(safe.span(), "expected `safe`"));
        }
        let sig = input.parse()?;
        let semi_token = input.parse::<Token![;]>()?;
        Ok(SafeFn(ForeignItemFn { attrs, vis, sig, semi_token }))
    }
}
