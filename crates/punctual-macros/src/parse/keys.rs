//! The `key = value, ..` lists inside the framework's attributes, with typed access to their
//! values.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitBool, LitStr, Meta, Token, token};

use super::constants::Constants;
use super::table::{self, Key};
use super::{misspelled, separated};
use crate::errors::Errors;
use crate::suggest;

/// The entries of one attribute: each key is known and given once, each value is present but not
/// yet typed.
pub(super) struct Keys {
    known: &'static [Key],
    entries: Vec<Entry>,
}

struct Entry {
    key: Ident,
    value: Option<Value>,
}

enum Value {
    Expr(Box<Expr>),
    /// `[..]`, whose syntax depends on the key.
    List(Group),
}

impl Keys {
    /// Parses the entries of `attr`, which may also be bare.
    pub(super) fn of(attr: &Attribute, known: &'static [Key], errors: &mut Errors) -> Self {
        let tokens = match &attr.meta {
            Meta::Path(_) => TokenStream::new(),
            Meta::List(list) => list.tokens.clone(),
            Meta::NameValue(_) => {
                let name = attr.path().to_token_stream();
                errors.at(attr, format_args!("`#[{name}]` takes its keys in parentheses: `#[{name}(..)]`"));
                TokenStream::new()
            }
        };
        Self::parse(&format!("`#[{}]`", attr.path().to_token_stream()), tokens, known, errors)
    }

    /// Parses the entries in `tokens`, the inside of the construct that errors call `place`.
    pub(super) fn parse(
        place: &str,
        tokens: TokenStream,
        known: &'static [Key],
        errors: &mut Errors,
    ) -> Self {
        let entries = separated(entry, tokens, errors);
        let mut keys = Keys { known, entries: Vec::new() };
        for entry in entries {
            let name = entry.key.to_string();
            let Some(key) = known.iter().find(|key| key.name() == name) else {
                if place == "`#[init]`" && name == "shared" {
                    errors.at(
                        &entry.key,
                        "`init` creates the shared resources, so it cannot use them; remove \
                         `shared`, and work on the values \
                         before `init` returns them",
                    );
                    continue;
                }
                if let Some(answer) = misspelled::rtic_key(&name) {
                    errors.at(&entry.key, format_args!("`{name}` is a key of RTIC: {answer}"));
                    continue;
                }
                let names = || known.iter().map(Key::name);
                let answer = match suggest::nearest(&name, names()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("the keys are {}", suggest::list(names())),
                };
                errors.at(&entry.key, format_args!("unknown key `{name}` in {place}; {answer}"));
                continue;
            };
            if keys.key(&name).is_some() {
                errors.at(&entry.key, format_args!("`{name}` is given twice; remove one"));
            } else if entry.value.is_none() && !matches!(key.value, table::Value::Flag) {
                errors.at(
                    &entry.key,
                    format_args!("`{name}` has no value; write `{name} = {form}`", form = key.form()),
                );
            } else {
                keys.entries.push(entry);
            }
        }
        keys
    }

    /// Returns the key of that name as written, if it was given.
    pub(super) fn key(&self, name: &str) -> Option<&Ident> {
        self.entry(name).map(|entry| &entry.key)
    }

    /// Returns an integer, or an expression that the macro can evaluate to one.
    pub(super) fn int(&self, name: &str, constants: &Constants, errors: &mut Errors) -> Option<u16> {
        let expr = self.expr(name, errors)?;
        let table::Value::Int(low, high) = self.row(name)?.value else { return None };
        let value = constants.value(expr);
        if let Some(value) =
            value.and_then(|value| value.try_into().ok()).filter(|value| (low..=high).contains(value))
        {
            return Some(value);
        }
        let given = expr.to_token_stream();
        let range = format!("`{name}` is an integer from {low} to {high}");
        let message = match (value, ungrouped(expr)) {
            (Some(value), Expr::Path(_) | Expr::Binary(_) | Expr::Cast(_)) => {
                format!("{range}, and this is {value}")
            }
            (None, Expr::Path(_) | Expr::Binary(_) | Expr::Cast(_) | Expr::Call(_)) => format!(
                "{range}, known to the macro: it evaluates integers, `+ - * / %`, and constants of \
                 this module; write `const` \
                 there for the value"
            ),
            _ => format!("{range}, not `{given}`"),
        };
        errors.at(expr, message);
        None
    }

    /// Returns a boolean; the key alone, if allowed, is `true`.
    pub(super) fn boolean(&self, name: &str, errors: &mut Errors) -> Option<LitBool> {
        let entry = self.entry(name)?;
        if entry.value.is_none() {
            return Some(LitBool::new(true, entry.key.span()));
        }
        let expr = self.expr(name, errors)?;
        if let Expr::Lit(ExprLit { lit: Lit::Bool(lit), .. }) = ungrouped(expr) {
            return Some(lit.clone());
        }
        errors.at(expr, format_args!("`{name}` is `true` or `false`, not `{}`", expr.to_token_stream()));
        None
    }

    pub(super) fn string(&self, name: &str, errors: &mut Errors) -> Option<LitStr> {
        let expr = self.expr(name, errors)?;
        if let Expr::Lit(ExprLit { lit: Lit::Str(lit), .. }) = ungrouped(expr) {
            return Some(lit.clone());
        }
        errors.push(self.malformed(name, expr));
        None
    }

    pub(super) fn ident(&self, name: &str, errors: &mut Errors) -> Option<Ident> {
        let expr = self.expr(name, errors)?;
        if let Expr::Path(path) = ungrouped(expr)
            && let Some(ident) = path.path.get_ident()
        {
            return Some(ident.clone());
        }
        errors.push(match ungrouped(expr) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if as_name(text).is_some() => {
                let value = text.value();
                let message = format!("names are written without quotes: `{name} = {value}`");
                errors.push(syn::Error::new(text.span(), message));
                return as_name(text);
            }
            _ => self.malformed(name, expr),
        });
        None
    }

    /// Returns the value of the given name. `values` are in the order of the table's names; the
    /// first is the default.
    pub(super) fn choice<T: Copy, const N: usize>(
        &self,
        name: &str,
        values: [T; N],
        errors: &mut Errors,
    ) -> T {
        let Some(given) = self.ident(name, errors) else { return values[0] };
        let Some(&table::Value::Choice(names, meaning)) = self.row(name).map(|row| &row.value) else {
            return values[0];
        };
        if let Some((_, value)) = names.iter().zip(values).find(|(name, _)| given == **name) {
            return value;
        }
        let text = given.to_string();
        // With another initial it is rather another word: `never` is not `every`.
        let similar = |name: &&str| name.chars().next() == text.chars().next();
        let meant = suggest::meant(&text, names.iter().copied().filter(similar));
        let names = table::alternatives(names.iter().map(|name| format!("`{name}`")));
        errors.at(&given, format_args!("`{name}` is {names}: {meaning}{meant}"));
        values[0]
    }

    /// Reports the keys without effect because another key is missing.
    pub(super) fn check_requirements(&self, errors: &mut Errors) {
        for row in self.known {
            if let (Some((other, error)), Some(key)) = (row.requires, self.key(row.name()))
                && self.key(other).is_none()
            {
                errors.at(key, format_args!("`{key}` {error} or remove `{key}`"));
            }
        }
    }

    pub(super) fn expr(&self, name: &str, errors: &mut Errors) -> Option<&Expr> {
        match self.entry(name)?.value.as_ref()? {
            Value::Expr(expr) => Some(expr),
            Value::List(list) => {
                errors.push(self.malformed(name, list));
                None
            }
        }
    }

    /// Returns the expression under the key `name`, valid or not.
    pub(super) fn value(&self, name: &str) -> Option<&Expr> {
        match self.entry(name)?.value.as_ref()? {
            Value::Expr(expr) => Some(expr),
            Value::List(_) => None,
        }
    }

    /// Returns the inside of a `[..]` value.
    pub(super) fn list(&self, name: &str, errors: &mut Errors) -> Option<TokenStream> {
        match self.entry(name)?.value.as_ref()? {
            Value::List(list) => Some(list.stream()),
            Value::Expr(expr) => {
                errors.push(self.malformed(name, expr));
                None
            }
        }
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    fn row(&self, name: &str) -> Option<&'static Key> {
        self.known.iter().find(|key| key.name() == name)
    }

    fn malformed(&self, name: &str, value: impl ToTokens) -> syn::Error {
        let form = self.row(name).map_or("<value>".into(), Key::form);
        let given = value.to_token_stream().to_string();
        syn::Error::new_spanned(value, format_args!("write `{name} = {form}`, not `{name} = {given}`"))
    }
}

/// Returns the name in a string.
fn as_name(text: &LitStr) -> Option<Ident> {
    syn::parse_str(&text.value()).ok()
}

/// Rejects a name in quotes as the next entry of a list.
pub(super) fn not_quoted(input: ParseStream<'_>) -> syn::Result<()> {
    let text = input.fork().parse::<LitStr>().ok();
    match text.as_ref().and_then(as_name) {
        Some(name) => Err(input.error(format!("names are written without quotes: `{name}`"))),
        None => Ok(()),
    }
}

/// Removes the invisible groups around `macro_rules!` fragments, and parentheses.
pub(crate) fn ungrouped(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        };
    }
}

fn entry(input: ParseStream<'_>) -> syn::Result<Entry> {
    let key = input.call(Ident::parse_any)?;
    if !input.is_empty() && !input.peek(Token![=]) && !input.peek(Token![,]) {
        input.parse::<Option<Token![:]>>()?;
        let mut value = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![,]) {
            value.extend([input.parse::<TokenTree>()?]);
        }
        let value = match value.clone().into_iter().next() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => group.stream(),
            _ => value,
        };
        let message = format!("a key and its value are joined by `=`; write `{key} = {value}`");
        return Err(syn::Error::new(key.span(), message));
    }
    if input.parse::<Option<Token![=]>>()?.is_none() || input.is_empty() || input.peek(Token![,]) {
        return Ok(Entry { key, value: None });
    }
    let value = if input.peek(token::Bracket) {
        Value::List(input.parse()?)
    } else {
        Value::Expr(Box::new(input.parse()?))
    };
    Ok(Entry { key, value: Some(value) })
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors};

    #[track_caller]
    fn rejects(keys: TokenStream, parts: &[&str]) {
        assert_one(&errors(quote! { #[task(#keys)] fn t(cx: t::Context) {} }), parts);
    }

    #[test]
    fn unknown_key() {
        rejects(quote!(prio = 2), &["unknown key `prio` in `#[task]`; did you mean `priority`?"]);
        rejects(
            quote!(rate = 2),
            &["unknown key `rate` in `#[task]`", "`priority`, `core`, `capacity`, `shared`"],
        );
    }

    #[test]
    fn key_given_twice() {
        rejects(quote!(priority = 2, priority = 3), &["`priority` is given twice"]);
    }

    #[test]
    fn key_without_a_value() {
        let message = "`priority` has no value; write `priority = <integer from 1 to 28>`";
        rejects(quote!(priority), &[message]);
        rejects(quote!(priority =), &[message]);
        rejects(quote!(priority = , capacity = 2), &[message]);
    }

    #[test]
    fn priorities_out_of_range_or_malformed() {
        for (given, shown) in [
            (quote!(29), "`29`"),
            (quote!(99999), "`99999`"),
            (quote!(-1), "`- 1`"),
            (quote!("2"), "`\"2\"`"),
        ] {
            rejects(quote!(priority = #given), &["`priority` is an integer from 1 to 28, not", shown]);
        }
    }

    #[test]
    fn computed_priorities() {
        rejects(quote!(priority = 0), &["priority 0 is reserved for `idle`", "write `priority = 1`"]);
        rejects(quote!(priority = 20 + 9), &["`priority` is an integer from 1 to 28, and this is 29"]);
        rejects(quote!(priority = LEVEL), &["known to the macro", "constants of this module"]);
        rejects(quote!(priority = level(2)), &["known to the macro"]);
    }

    #[test]
    fn capacities_out_of_range() {
        rejects(quote!(capacity = 0), &["`capacity` is an integer from 1 to 1024, not `0`"]);
        rejects(quote!(capacity = 1025), &["`capacity` is an integer from 1 to 1024, not `1025`"]);
    }

    #[test]
    fn lists_and_names_of_wrong_shape() {
        rejects(quote!(shared = a), &["write `shared = [a, &b]`, not `shared = a`"]);
        rejects(quote!(priority = [1]), &["write `priority = <integer from 1 to 28>`"]);
        rejects(quote!(binds = 2), &["write `binds = <name in `local`>`"]);
    }

    #[test]
    fn names_in_quotes() {
        rejects(
            quote!(period = 1.secs(), on_overrun = "queue"),
            &["names are written without quotes: `on_overrun = queue`"],
        );
        rejects(quote!(shared = ["a"]), &["names are written without quotes: `a`"]);
        rejects(quote!(local = ["a"]), &["names are written without quotes: `a`"]);
    }

    #[test]
    fn keys_without_an_equals_sign() {
        for given in [quote!(priority 2), quote!(priority: 2), quote!(priority(2))] {
            rejects(given, &["joined by `=`; write `priority = 2`"]);
        }
    }

    #[test]
    fn parsing_resumes_after_bad_entry() {
        let errors = errors(quote! { #[task(7, priority 2, capacity = 0)] fn t(cx: t::Context) {} });
        assert_eq!(errors.len(), 3, "{errors:#?}");
    }

    #[test]
    fn keys_stand_in_parentheses() {
        let errors = errors(quote! { #[task = 2] fn t(cx: t::Context) {} });
        assert_one(&errors, &["`#[task(..)]`"]);
    }
}
