//! Stubs for an application with mistakes.
//!
//! The mistakes are reported. If the generated code were missing, everything that depends on it
//! would be reported, too. So the stubs declare its names, without the handlers, whose bodies may
//! be wrong.

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::{self, Visit};
use syn::{
    AttrStyle, Attribute, FnArg, Generics, Ident, Item, ItemMod, Lifetime, PatType, Signature, Type,
    TypeImplTrait, TypePath, TypeReference,
};

use super::root;
use crate::check::{is_model, lifetimes};
use crate::errors::Errors;
use crate::model::{AppArgs, Role};
use crate::parse::{
    Mark, cfgs, foreign_fn, item_attrs, misspells, take_attribute, take_mark, take_misspelled,
    without_bodies, without_broken_items,
};

/// Returns the module with stubs in place of the generated code, or `item` itself if it is not a
/// module.
pub(crate) fn stubs(args: &AppArgs, item: TokenStream) -> TokenStream {
    // If there is a syntax error, the parser processes the rest without it: at best everything but
    // the bodies.
    let module = syn::parse2(item.clone())
        .or_else(|_| syn::parse2(without_bodies(item.clone())))
        .or_else(|_| syn::parse2(without_broken_items(without_bodies(item.clone()))));
    let Ok(ItemMod { attrs, vis, ident, content: Some((_, items)), .. }) = module else {
        return item;
    };
    let has_model = items.iter().any(is_model);
    let mut stubs =
        Stubs { types: items.iter().filter(|item| is_type(item)).cloned().collect(), ..Stubs::default() };
    items.into_iter().for_each(|item| stubs.item(item));
    let (inner, outer): (Vec<_>, Vec<_>) =
        attrs.iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    let Stubs { items, handlers, starts, init, .. } = stubs;
    let root = args.root.as_ref();
    let handlers = root::replaced(handlers, root);
    let starts = root::replaced(starts, root);
    let main = (args.main.as_ref().is_none_or(|main| main.value) && init.is_empty())
        .then(|| quote! { #[allow(warnings)] pub(crate) fn main() {} });
    let model = (!has_model).then(|| {
        quote! {
            pub static MODEL: ::punctual::model::Model =
                ::punctual::model::Model::new("", &[], &[], &[], ::core::option::Option::None);
        }
    });
    let run = quote! {
        #model
        pub fn run(
            _: ::punctual::Config,
            #(#init),*
        ) -> ::core::result::Result<::punctual::Report, ::punctual::StartError> {
            loop {}
        }
    };
    let run = root::replaced(run, root);
    quote! {
        #(#outer)*
        #[allow(warnings)]
        #vis mod #ident {
            #(#inner)*
            #(#items)*
            #handlers
            pub struct __punctual_LocalSpawner<'a>(::core::marker::PhantomData<&'a ()>);
            impl __punctual_LocalSpawner<'_> {
                #starts
            }
            #run
        }
        #main
    }
}

fn is_type(item: &Item) -> bool {
    matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Type(_) | Item::Mod(_))
}

#[derive(Default)]
struct Stubs {
    /// The types of the module.
    types: Vec<Item>,
    items: Vec<Item>,
    handlers: TokenStream,
    /// The methods of the spawner of local tasks.
    starts: TokenStream,
    /// The parameters of `init` after the context.
    init: Vec<PatType>,
    /// Existing items, with their conditions.
    seen: Vec<(Ident, Vec<Attribute>)>,
}

impl Stubs {
    fn item(&mut self, mut item: Item) {
        if let Item::ForeignMod(block) = &mut item {
            let of_block = cfgs(&block.attrs);
            block.items.retain(|item| {
                let Some(mut function) = foreign_fn(item) else { return true };
                let cfgs = [&of_block[..], &cfgs(&function.attrs)].concat();
                match take_mark(&mut function.attrs, &mut Errors::default()) {
                    Some((mark, _)) => self.handler(mark, &cfgs, &function.sig),
                    None => return true,
                }
                false
            });
            if !block.items.is_empty() {
                self.items.push(item);
            }
            return;
        }
        take_attribute(&mut item, &mut Errors::default());
        let mark = item_attrs(&mut item).and_then(|attrs| take_mark(attrs, &mut Errors::default()));
        match (mark, item) {
            (Some((mark @ Mark::Handler(_), _)), Item::Fn(function)) => {
                self.handler(mark, &cfgs(&function.attrs), &function.sig);
            }
            (None, Item::Fn(mut function)) => {
                if take_misspelled(&mut function, &self.types, &mut Errors::default()) {
                    self.handler(Mark::Handler(Role::Task), &cfgs(&function.attrs), &function.sig);
                } else {
                    self.items.push(Item::Fn(function));
                }
            }
            (mark, Item::Struct(mut item)) => {
                // A misspelled attribute has been reported, and is unknown to the compiler.
                item.attrs.retain(|attr| mark.is_some() || misspells(attr, &["shared", "local"]).is_none());
                for field in &mut item.fields {
                    field.attrs.retain(|attr| {
                        !attr.path().is_ident("lock_free") && misspells(attr, &["lock_free"]).is_none()
                    });
                }
                let cfgs = cfgs(&item.attrs);
                self.once(item.ident.clone(), &cfgs, |stubs| stubs.items.push(Item::Struct(item)));
            }
            (_, item) => self.items.push(item),
        }
    }

    fn handler(&mut self, mark: Mark, cfgs: &[Attribute], sig: &Signature) {
        let ident = &sig.ident;
        let params: Vec<PatType> = sig.inputs.iter().filter_map(parameter).skip(1).collect();
        if mark == Mark::Handler(Role::Init) {
            self.init = params.clone();
        }
        let plain = mark == Mark::Handler(Role::Task) && is_plain(&self.types, &sig.generics, &params);
        let release = plain.then(|| release(&params));
        let start = plain.then(|| start(ident, &params));
        self.once(ident.clone(), cfgs, |stubs| {
            stubs.starts.extend(start.map(|start| quote!(#(#cfgs)* #start)));
            stubs.handlers.extend(quote! {
                #(#cfgs)*
                pub mod #ident {
                    use super::*;
                    pub use super::__punctual_LocalSpawner as LocalSpawner;
                    pub struct Context<'a>(::core::marker::PhantomData<&'a ()>);
                    pub struct SharedResources<'a>(::core::marker::PhantomData<&'a ()>);
                    pub struct LocalResources<'a>(::core::marker::PhantomData<&'a ()>);
                    #release
                }
            });
        });
    }

    /// Calls `f` unless there has been an item of that name, without a condition or with the same
    /// one.
    fn once(&mut self, name: Ident, cfgs: &[Attribute], f: impl FnOnce(&mut Self)) {
        let same = |(other, of): &(Ident, Vec<Attribute>)| *other == name && (of.is_empty() || of == cfgs);
        if !self.seen.iter().any(same) {
            self.seen.push((name, cfgs.to_vec()));
            f(self);
        }
    }
}

fn start(ident: &Ident, params: &[PatType]) -> TokenStream {
    let (types, args) = message(params);
    quote! {
        pub fn #ident(&self, #(_: #types),*) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> { loop {} }
    }
}

fn message(params: &[PatType]) -> (Vec<&Type>, TokenStream) {
    let types: Vec<_> = params.iter().map(|param| &*param.ty).collect();
    let args = match &types[..] {
        [ty] => quote!(#ty),
        _ => quote!((#(#types),*)),
    };
    (types, args)
}

/// For any kind of task: which of these it has may be the mistake.
fn release(params: &[PatType]) -> TokenStream {
    let (types, args) = message(params);
    quote! {
        pub struct SpawnHandle(());
        impl SpawnHandle {
            pub fn cancel(self) -> ::core::result::Result<#args, ::punctual::TooLate> { loop {} }
            pub fn reschedule_after(self, _: impl ::punctual::IntoDuration) -> ::core::result::Result<Self, ::punctual::TooLate> { loop {} }
            pub fn reschedule_at(self, _: ::punctual::Instant) -> ::core::result::Result<Self, ::punctual::TooLate> { loop {} }
        }
        pub fn pend() {}
        pub fn spawn(#(_: #types),*) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> { loop {} }
        pub fn spawn_after(
            _: impl ::punctual::IntoDuration, #(_: #types),*
        ) -> ::core::result::Result<SpawnHandle, ::punctual::SpawnError<#args>> { loop {} }
        pub fn spawn_at(
            _: ::punctual::Instant, #(_: #types),*
        ) -> ::core::result::Result<SpawnHandle, ::punctual::SpawnError<#args>> { loop {} }
    }
}

fn parameter(input: &FnArg) -> Option<PatType> {
    let FnArg::Typed(parameter) = input else { return None };
    let mut parameter = parameter.clone();
    parameter.attrs.clear();
    *parameter.pat = syn::parse_quote!(_);
    Some(parameter)
}

/// Returns whether the types mean the same in another function's signature.
fn is_plain(types: &[Item], generics: &Generics, params: &[PatType]) -> bool {
    struct Plain<'a>(&'a [Item], bool);
    impl<'ast> Visit<'ast> for Plain<'_> {
        fn visit_type_reference(&mut self, ty: &'ast TypeReference) {
            self.1 &= ty.lifetime.is_some();
            visit::visit_type_reference(self, ty);
        }

        fn visit_type_path(&mut self, ty: &'ast TypePath) {
            self.1 &= ty.path.get_ident().is_none_or(|name| lifetimes(self.0, name).is_none());
            visit::visit_type_path(self, ty);
        }

        fn visit_type_impl_trait(&mut self, _: &'ast TypeImplTrait) {
            self.1 = false;
        }

        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            self.1 &= lifetime.ident != "_";
        }
    }
    let mut plain = Plain(types, generics.params.is_empty());
    params.iter().for_each(|param| plain.visit_type(&param.ty));
    plain.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the attributes of the stub modules of the handlers in `items`, by name.
    fn modules(items: TokenStream) -> Vec<(String, usize)> {
        let stubs = stubs(&AppArgs::default(), quote! { mod app { #items } });
        let file: syn::File = syn::parse2(stubs).expect("stubs can be parsed");
        let Item::Mod(app) = &file.items[0] else { panic!("the app is a module") };
        let (_, items) = app.content.as_ref().expect("it is inline");
        let module = |item: &Item| match item {
            Item::Mod(module) => Some((module.ident.to_string(), module.attrs.len())),
            _ => None,
        };
        items.iter().filter_map(module).collect()
    }

    fn named(names: &[(&str, usize)]) -> Vec<(String, usize)> {
        names.iter().map(|(name, attrs)| ((*name).to_owned(), *attrs)).collect()
    }

    #[test]
    fn stubs_share_condition_of_replaced_items() {
        let items = quote! {
            #[cfg(a)] #[task] fn one(cx: one::Context) {}
            #[cfg(not(a))] #[task] fn one(cx: one::Context, n: u8) {}
            #[task] fn twice(cx: twice::Context) {}
            #[task] fn twice(cx: twice::Context) {}
            #[cfg(b)] extern "Rust" { #[cfg(c)] #[task] fn outside(cx: outside::Context); }
        };
        assert_eq!(modules(items), named(&[("one", 1), ("one", 1), ("twice", 0), ("outside", 2)]));
    }

    #[test]
    fn syntax_error_outside_bodies_keeps_all_names() {
        let items = quote! {
            #[init] fn init(_: init::Context) -> (Shared, Local) { let = 3; }
            const N: u8 = ;
            #[task] fn broken(_: broken::Context, _ u8) {}
            #[task] fn whole(_: whole::Context) {}
        };
        assert_eq!(modules(items), named(&[("init", 0), ("broken", 0), ("whole", 0)]));
    }
}
