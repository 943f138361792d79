//! The two halves of an app with a partition that is `offline`: each item of the framework's belongs to one of them.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Ident, Item, ItemStatic, Lit, Meta, MetaNameValue, Token};

use super::attributes::{Mark, item_attrs, take_mark};
use crate::errors::Errors;
use crate::model::{AppArgs, Role};

/// The items of a module, by half.
pub(super) struct Separated {
    pub(super) linux: Vec<Item>,
    pub(super) offline: Vec<Item>,
    /// What is not the framework's, for whichever half is compiled.
    pub(super) common: Vec<Item>,
    /// `#[both] static`
    pub(super) statics: Vec<ItemStatic>,
}

/// The partition that runs without Linux, if there is one.
pub(super) fn offline<'a>(args: &'a AppArgs, errors: &mut Errors) -> Option<&'a Ident> {
    let mut all =
        args.partitions.iter().filter(|partition| partition.offline).map(|partition| &partition.ident);
    let first = all.next()?;
    for another in all {
        errors.at(
            another,
            format_args!(
                "`{another}` is the second partition that is `offline`, after `{first}`: one CPU at a time runs without Linux; put the \
                 tasks of both into one"
            ),
        );
    }
    if args.partitions.iter().all(|partition| partition.offline) {
        errors.at(
            first,
            format_args!(
                "no partition is left for Linux: add one, as in `partitions = [{first}(offline), ui]`, or build all of the app for the \
                 board `amp`, without `offline`"
            ),
        );
        return None;
    }
    Some(first)
}

pub(super) fn separate(items: Vec<Item>, args: &AppArgs, errors: &mut Errors) -> Separated {
    let mut separated =
        Separated { linux: Vec::new(), offline: Vec::new(), common: Vec::new(), statics: Vec::new() };
    for mut item in items {
        if let Item::ForeignMod(block) = &item
            && block.items.iter().any(|item| {
                super::foreign_fn(item)
                    .is_some_and(|mut f| take_mark(&mut f.attrs, &mut Errors::default()).is_some())
            })
        {
            errors.at(
                &block.abi,
                "the handlers of an app in two halves are in its module: of each half only some are compiled; move them there, and \
                 call from them what is elsewhere",
            );
            continue;
        }
        if let Item::Static(statik) = &mut item
            && take_both(&mut statik.attrs, errors)
        {
            let Item::Static(statik) = item else { unreachable!("it is one") };
            separated.statics.push(statik);
            continue;
        }
        let mark = item_attrs(&mut item).and_then(|attrs| {
            let at = attrs.iter().position(|attr| Mark::of(&attr.meta).is_some())?;
            Some((Mark::of(&attrs[at].meta)?, at))
        });
        let Some((mark, at)) = mark else {
            separated.common.push(item);
            continue;
        };
        let Some(attrs) = item_attrs(&mut item) else { continue };
        let Some(core) = take_core(mark, &mut attrs[at], args, errors) else { continue };
        match args.partitions.iter().find(|partition| partition.ident == core) {
            Some(partition) if partition.offline => separated.offline.push(item),
            Some(_) => separated.linux.push(item),
            None => {
                let names: Vec<String> =
                    args.partitions.iter().map(|partition| format!("`{}`", partition.ident)).collect();
                errors.at(
                    &core,
                    format_args!("no partition is named `{core}`; there are {}", names.join(", ")),
                );
            }
        }
    }
    separated
}

fn take_both(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> bool {
    let both: Vec<Attribute> = attrs.extract_if(.., |attr| attr.path().is_ident("both")).collect();
    for attr in both.iter().filter(|attr| attr.meta.require_path_only().is_err()) {
        errors.at(attr, "`#[both]` takes no arguments");
    }
    !both.is_empty()
}

/// The partition that an attribute names. That of a task keeps it; in the others it is known in apps with two halves alone.
fn take_core(mark: Mark, attr: &mut Attribute, args: &AppArgs, errors: &mut Errors) -> Option<Ident> {
    let tokens = match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        _ => TokenStream::new(),
    };
    let (mut core, mut rest) = (None, Vec::new());
    for entry in entries(tokens) {
        let pair = Parser::parse2(<MetaNameValue as syn::parse::Parse>::parse, entry.clone()).ok();
        match pair.filter(|pair| pair.path.is_ident("core")).map(|pair| pair.value) {
            Some(Expr::Path(path)) if path.path.get_ident().is_some() => {
                core = path.path.get_ident().map(IdentExt::unraw);
            }
            Some(Expr::Lit(ExprLit { lit: Lit::Str(name), .. })) => {
                let message = format!("names are written without quotes: `core = {}`", name.value());
                errors.at(name, message);
                return None;
            }
            _ => rest.push(entry),
        }
    }
    let Some(core) = core else {
        let name = mark.name();
        let example =
            args.partitions.first().map(|partition| partition.ident.to_string()).unwrap_or_default();
        errors.at(
            &*attr,
            format_args!(
                "in an app with two halves `#[{name}]` says whose it is: `#[{name}(core = {example})]`, or another partition"
            ),
        );
        return None;
    };
    if mark != Mark::Handler(Role::Task) {
        let path = attr.path().clone();
        attr.meta = match rest.is_empty() {
            true => Meta::Path(path),
            false => {
                let rest: Punctuated<TokenStream, Token![,]> = rest.into_iter().collect();
                let tokens = rest.into_token_stream();
                syn::parse_quote!(#path(#tokens))
            }
        };
    }
    Some(core)
}

/// What commas separate.
fn entries(tokens: TokenStream) -> Vec<TokenStream> {
    let mut entries = vec![TokenStream::new()];
    for token in tokens {
        match (&token, entries.last_mut()) {
            (TokenTree::Punct(comma), _) if comma.as_char() == ',' => entries.push(TokenStream::new()),
            (_, Some(last)) => last.extend([token]),
            (_, None) => {}
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}
