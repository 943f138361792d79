//! Evaluation of `#[cfg]`s.
//!
//! Only the compiler evaluates predicates, so an app with conditions expands twice. The first
//! expansion returns the module under the same attribute, preceded by a `#[cfg_attr(<predicate>,
//! doc = "..")]` for each predicate. The compiler resolves these before it expands the attribute
//! again, which then finds a doc for each predicate that holds, and parses a module without
//! conditions.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Field, FnArg, ForeignItem, Item, ItemMod, Lit, Meta};

use super::args;
use super::attributes::{Mark, cfg_attr, item_attrs};
use super::handler::foreign_fn;
use crate::errors::Errors;

/// The doc that follows the answers, and the prefix of each answer.
const ANSWERED: &str = "__punctual conditions";

/// The predicates that hold, as text.
#[derive(Default)]
pub(crate) struct Conditions(BTreeSet<String>);

/// Items that the conditions of a module have removed.
#[derive(Default)]
pub(crate) struct Absent {
    pub(crate) items: Vec<Item>,
    pub(crate) fields: Vec<Field>,
}

/// The input of the attribute.
pub(crate) struct Source {
    /// As written, without the items that conditions remove.
    pub(crate) tokens: TokenStream,
    /// A module without conditions, or the reason why the input is not a module.
    pub(crate) module: syn::Result<ItemMod>,
    pub(crate) conditions: Conditions,
    pub(crate) absent: Absent,
}

impl Source {
    /// Reads the input of an attribute with the arguments `args`.
    ///
    /// # Errors
    /// Returns the expansion that makes the compiler evaluate the conditions.
    pub(crate) fn new(args: &TokenStream, tokens: TokenStream) -> Result<Self, TokenStream> {
        let mut module = syn::parse2::<ItemMod>(tokens.clone());
        let conditions = match &mut module {
            Ok(module) => conditions(args, module)?,
            Err(_) => None,
        };
        Ok(Self::resolved(tokens, module, conditions))
    }

    fn resolved(
        mut tokens: TokenStream,
        mut module: syn::Result<ItemMod>,
        conditions: Option<Conditions>,
    ) -> Self {
        let mut absent = Absent::default();
        if let (Ok(module), Some(conditions)) = (&mut module, &conditions) {
            if let Some((_, items)) = &mut module.content {
                absent = conditions.apply(items);
            }
            tokens = module.to_token_stream();
        }
        Self { tokens, module, conditions: conditions.unwrap_or_default(), absent }
    }

    /// Returns the input if exactly these predicates hold.
    #[cfg(test)]
    pub(crate) fn holding(tokens: TokenStream, predicates: &[&str]) -> Self {
        let module = syn::parse2(tokens.clone());
        Self::resolved(tokens, module, Some(Conditions::holding(predicates)))
    }
}

/// Returns the conditions of `module`, if it has any, or the query for them.
fn conditions(args: &TokenStream, module: &mut ItemMod) -> Result<Option<Conditions>, TokenStream> {
    let predicates = predicates(module);
    let texts = predicates.iter().map(TokenStream::to_string);
    let docs: Vec<String> = module.attrs.iter().filter_map(answer).collect();
    if !docs.is_empty() {
        module.attrs.retain(|attr| answer(attr).is_none());
        let holds = |index: &usize| docs.contains(&format!("{ANSWERED} {index}"));
        let holding = texts.enumerate().filter(|(index, _)| holds(index)).map(|(_, text)| text);
        return Ok(Some(Conditions(holding.collect())));
    }
    if predicates.is_empty() {
        return Ok(None);
    }
    let questions = predicates.iter().enumerate().map(|(index, predicate)| {
        let text = format!("{ANSWERED} {index}");
        quote!(#[cfg_attr(#predicate, doc = #text)])
    });
    let root = args::parse(args.clone(), &mut Errors::default()).root;
    let root = root.map_or_else(|| quote!(::punctual), |root| quote!(#root));
    Err(quote! {
        #(#questions)*
        #[doc = #ANSWERED]
        #[#root::app(#args)]
        #module
    })
}

/// Returns the text of an attribute that the first expansion added.
fn answer(attr: &Attribute) -> Option<String> {
    let Meta::NameValue(doc) = &attr.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &doc.value else { return None };
    Some(text.value()).filter(|text| attr.path().is_ident("doc") && text.starts_with(ANSWERED))
}

impl Conditions {
    /// Returns the conditions if exactly the given predicates hold.
    #[cfg(test)]
    pub(crate) fn holding(predicates: &[&str]) -> Self {
        let text = |text: &&str| text.parse::<TokenStream>().expect("a predicate").to_string();
        Self(predicates.iter().map(text).collect())
    }

    /// Removes from `items` those that the conditions exclude, and resolves the `#[cfg_attr]`s of
    /// the rest.
    pub(super) fn apply(&self, items: &mut Vec<Item>) -> Absent {
        let mut absent = Absent::default();
        for mut item in std::mem::take(items) {
            if !is_needed(&mut item) {
                items.push(item);
            } else if item_attrs(&mut item).is_none_or(|attrs| self.holds(attrs)) {
                self.apply_within(&mut item, &mut absent);
                items.push(item);
            } else {
                absent.items.push(item);
            }
        }
        absent
    }

    fn apply_within(&self, item: &mut Item, absent: &mut Absent) {
        match item {
            Item::Struct(item) => {
                if let syn::Fields::Named(fields) = &mut item.fields {
                    for mut field in std::mem::take(&mut fields.named) {
                        match self.holds(&mut field.attrs) {
                            true => fields.named.push(field),
                            false => absent.fields.push(field),
                        }
                    }
                }
            }
            Item::Fn(item) => {
                for mut input in std::mem::take(&mut item.sig.inputs) {
                    let holds = match &mut input {
                        FnArg::Typed(parameter) => self.holds(&mut parameter.attrs),
                        FnArg::Receiver(_) => true,
                    };
                    if holds {
                        item.sig.inputs.push(input);
                    }
                }
            }
            Item::ForeignMod(block) => {
                block.items.retain_mut(|item| match foreign_fn(item) {
                    Some(mut function) => {
                        let holds = self.holds(&mut function.attrs);
                        if let ForeignItem::Fn(item) = item {
                            *item = function;
                        }
                        holds
                    }
                    None => true,
                });
            }
            _ => {}
        }
    }

    /// Returns whether an item with these attributes exists. Resolves the `#[cfg_attr]`s among
    /// them; a `#[cfg]` that holds stays.
    pub(super) fn holds(&self, attrs: &mut Vec<Attribute>) -> bool {
        let resolved = attrs.drain(..).flat_map(|attr| self.resolve(attr)).collect();
        *attrs = resolved;
        attrs.iter().all(|attr| match &attr.meta {
            Meta::List(list) if list.path.is_ident("cfg") => self.0.contains(&list.tokens.to_string()),
            _ => true,
        })
    }

    /// Returns the compiler's result for an attribute.
    fn resolve(&self, attr: Attribute) -> Vec<Attribute> {
        let Meta::List(list) = &attr.meta else { return vec![attr] };
        if !list.path.is_ident("cfg_attr") {
            return vec![attr];
        }
        let Ok((predicate, attrs)) = list.parse_args_with(cfg_attr) else { return vec![attr] };
        if !self.0.contains(&predicate.to_string()) {
            return Vec::new();
        }
        attrs.into_iter().flat_map(|meta| self.resolve(Attribute { meta, ..attr.clone() })).collect()
    }
}

/// Returns whether the conditions of an item matter: if it belongs to the framework, or is a
/// constant, which may be the value of a key.
fn is_needed(item: &mut Item) -> bool {
    match item {
        Item::Const(_) => return true,
        Item::ForeignMod(block) => {
            let functions = block.items.iter().filter_map(foreign_fn);
            return functions.flat_map(|function| function.attrs).any(|attr| is_marked(&attr.meta));
        }
        _ => {}
    }
    item_attrs(item).is_some_and(|attrs| attrs.iter().any(|attr| is_marked(&attr.meta)))
}

fn is_marked(meta: &Meta) -> bool {
    match meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            list.parse_args_with(cfg_attr).is_ok_and(|(_, attrs)| attrs.iter().any(is_marked))
        }
        meta => Mark::of(meta).is_some(),
    }
}

/// Returns the predicates in a module that affect items of the framework, without duplicates.
fn predicates(module: &mut ItemMod) -> Vec<TokenStream> {
    let mut found = Predicates::default();
    for item in module.content.iter_mut().flat_map(|(_, items)| items) {
        if !is_needed(item) {
            continue;
        }
        if let Some(attrs) = item_attrs(item) {
            found.attributes(attrs);
        }
        match item {
            Item::Struct(item) => item.fields.iter().for_each(|field| found.attributes(&field.attrs)),
            Item::Fn(item) => {
                for input in &item.sig.inputs {
                    if let FnArg::Typed(parameter) = input {
                        found.attributes(&parameter.attrs);
                    }
                }
            }
            Item::ForeignMod(block) => {
                let functions = block.items.iter().filter_map(foreign_fn);
                functions.for_each(|function| found.attributes(&function.attrs));
            }
            _ => {}
        }
    }
    found.predicates
}

#[derive(Default)]
struct Predicates {
    predicates: Vec<TokenStream>,
    seen: BTreeSet<String>,
}

impl Predicates {
    fn attributes(&mut self, attrs: &[Attribute]) {
        attrs.iter().for_each(|attr| self.meta(&attr.meta));
    }

    fn meta(&mut self, meta: &Meta) {
        let Meta::List(list) = meta else { return };
        if list.path.is_ident("cfg") {
            self.predicate(list.tokens.clone());
        } else if list.path.is_ident("cfg_attr") {
            if let Ok((predicate, attrs)) = list.parse_args_with(cfg_attr) {
                self.predicate(predicate);
                attrs.iter().for_each(|meta| self.meta(meta));
            }
        } else if Mark::of(meta).is_some() {
            self.entries(list.tokens.clone());
        }
    }

    /// Collects the conditions of the entries of lists, within the brackets of `shared = [..]`.
    fn entries(&mut self, tokens: TokenStream) {
        let mut hash = false;
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                match syn::parse2(group.stream()) {
                    Ok(meta) if hash && group.delimiter() == Delimiter::Bracket => self.meta(&meta),
                    _ => self.entries(group.stream()),
                }
            }
            hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        }
    }

    fn predicate(&mut self, predicate: TokenStream) {
        if self.seen.insert(predicate.to_string()) {
            self.predicates.push(predicate);
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn module() -> ItemMod {
        parse_quote! {
            mod app {
                #[cfg(z)] fn helper() {}
                #[shared] struct Shared { #[cfg(a)] x: u8, #[cfg(not(a))] x: u16 }
                #[cfg_attr(all(a, b), task(shared = [#[cfg(c)] x], local = [y: M<u8, u8> = { #[cfg(d)] 1 }]))]
                #[cfg_attr(not(a), cfg(e), inline)]
                fn t(cx: t::Context, #[cfg(f)] n: u8) {}
                #[cfg(a)] const LEVEL: u8 = 2;
            }
        }
    }

    fn applied(holding: &[&str]) -> (String, Absent) {
        let (_, mut items) = module().content.expect("it is inline");
        let absent = Conditions::holding(holding).apply(&mut items);
        (quote!(#(#items)*).to_string(), absent)
    }

    #[test]
    fn evaluates_each_condition_once() {
        let asked: Vec<_> = predicates(&mut module()).iter().map(TokenStream::to_string).collect();
        assert_eq!(asked, ["a", "not (a)", "all (a , b)", "c", "d", "e", "f"]);
    }

    #[test]
    fn reads_evaluated_constants() {
        let question = conditions(&quote!(main = false), &mut module()).err().expect("it asks");
        let mut asked: ItemMod = syn::parse2(question).expect("a module with attributes");
        // As if `a` and `f` held.
        let holds = |attr: &Attribute| match &attr.meta {
            Meta::List(list) if list.path.is_ident("cfg_attr") => {
                let (predicate, _) = list.parse_args_with(cfg_attr).expect("it is one");
                ["a", "f"].contains(&&*predicate.to_string())
            }
            meta => !meta.path().segments.iter().any(|segment| segment.ident == "app"),
        };
        asked.attrs.retain(holds);
        for attr in &mut asked.attrs {
            if let Meta::List(list) = &attr.meta {
                let (_, attrs) = list.parse_args_with(cfg_attr).expect("it is one");
                attr.meta = attrs.into_iter().next().expect("a doc");
            }
        }
        let conditions = conditions(&quote!(), &mut asked).ok().flatten().expect("it is answered");
        assert_eq!(conditions.0, BTreeSet::from(["a".to_owned(), "f".to_owned()]));
        assert!(asked.attrs.is_empty());
    }

    #[test]
    fn expands_module_without_conditions_directly() {
        let mut module = parse_quote!(
            mod app {
                #[cfg(a)]
                fn f() {}
                #[shared]
                struct Shared {}
            }
        );
        assert!(conditions(&quote!(), &mut module).is_ok_and(|conditions| conditions.is_none()));
    }

    #[test]
    fn removes_items_with_false_conditions() {
        let (rest, absent) = applied(&["a", "all (a , b)", "c", "f"]);
        assert!(rest.contains("x : u8") && !rest.contains("x : u16"), "{rest}");
        assert!(rest.contains("# [task (shared = [# [cfg (c)] x]") && rest.contains("n : u8"), "{rest}");
        assert!(rest.contains("# [cfg (z)] fn helper") && rest.contains("LEVEL"), "{rest}");
        assert_eq!((absent.items.len(), absent.fields.len()), (0, 1));
        let (rest, absent) = applied(&["not (a)"]);
        assert!(rest.contains("x : u16") && !rest.contains("fn t") && !rest.contains("LEVEL"), "{rest}");
        assert_eq!((absent.items.len(), absent.fields.len()), (2, 1));
        let (rest, _) = applied(&["not (a)", "e"]);
        assert!(rest.contains("# [cfg (e)] # [inline] fn t (cx : t :: Context)"), "{rest}");
    }
}
