//! What stands in for an application that has mistakes.
//!
//! The mistakes are reported; everything that depends on the generated code would be reported on top of them if it
//! were simply missing. So the names are there, and no handler: its body relies on what is wrong.

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::{self, Visit};
use syn::{
    AttrStyle, FnArg, Generics, Ident, Item, ItemMod, Lifetime, PatType, Signature, Type, TypeImplTrait,
    TypeReference,
};

use super::root;
use crate::errors::Errors;
use crate::model::{AppArgs, Role};
use crate::parse::{Mark, foreign_fn, item_attrs, take_attribute, take_mark, without_bodies};

/// The module with stubs for what would have been generated, or `item` itself if it is no module.
pub(crate) fn stubs(args: &AppArgs, item: TokenStream) -> TokenStream {
    // The tokens of a body with a syntax error are none the parser can take; that of any other item is a loss.
    let module = syn::parse2(item.clone()).or_else(|_| syn::parse2(without_bodies(item.clone())));
    let Ok(ItemMod { attrs, vis, ident, content: Some((_, items)), .. }) = module else {
        return item;
    };
    let mut stubs = Stubs::default();
    items.into_iter().for_each(|item| stubs.item(item));
    let (inner, outer): (Vec<_>, Vec<_>) =
        attrs.iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    let Stubs { kept, handlers, starts, init, .. } = stubs;
    let root = args.root.as_ref();
    let handlers = root::replaced(handlers, root);
    let starts = root::replaced(starts, root);
    let main = (args.main.as_ref().is_none_or(|main| main.value) && init.is_empty())
        .then(|| quote! { #[allow(warnings)] pub(crate) fn main() {} });
    let run = quote! {
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
            #(#kept)*
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

#[derive(Default)]
struct Stubs {
    kept: Vec<Item>,
    handlers: TokenStream,
    /// The methods of the spawner of local tasks.
    starts: TokenStream,
    /// The parameters of `init` after the context.
    init: Vec<PatType>,
    seen: Vec<Ident>,
}

impl Stubs {
    fn item(&mut self, mut item: Item) {
        if let Item::ForeignMod(block) = &mut item {
            block.items.retain(|item| {
                let Some(mut function) = foreign_fn(item) else { return true };
                match take_mark(&mut function.attrs, &mut Errors::default()) {
                    Some((mark, _)) => self.handler(mark, &function.sig),
                    None => return true,
                }
                false
            });
            if !block.items.is_empty() {
                self.kept.push(item);
            }
            return;
        }
        take_attribute(&mut item, &mut Errors::default());
        let mark = item_attrs(&mut item).and_then(|attrs| take_mark(attrs, &mut Errors::default()));
        match (mark, item) {
            (Some((mark @ Mark::Handler(_), _)), Item::Fn(function)) => self.handler(mark, &function.sig),
            (Some(_), Item::Struct(mut item)) => {
                for field in &mut item.fields {
                    field.attrs.retain(|attr| !attr.path().is_ident("lock_free"));
                }
                self.once(item.ident.clone(), |stubs| stubs.kept.push(Item::Struct(item)));
            }
            (_, item) => self.kept.push(item),
        }
    }

    fn handler(&mut self, mark: Mark, sig: &Signature) {
        let ident = &sig.ident;
        let params: Vec<PatType> = sig.inputs.iter().skip(1).filter_map(parameter).collect();
        if mark == Mark::Handler(Role::Init) {
            self.init = params.clone();
        }
        let plain = mark == Mark::Handler(Role::Task) && is_plain(&sig.generics, &params);
        let release = plain.then(|| release(&params));
        let start = plain.then(|| start(ident, &params));
        self.once(ident.clone(), |stubs| {
            stubs.starts.extend(start);
            stubs.handlers.extend(quote! {
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

    /// Calls `f` unless there has been an item of that name.
    fn once(&mut self, name: Ident, f: impl FnOnce(&mut Self)) {
        if !self.seen.contains(&name) {
            self.seen.push(name);
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

/// Whatever the task: which of these it has may be what is wrong.
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

/// Whether the types mean the same in another function's signature.
fn is_plain(generics: &Generics, params: &[PatType]) -> bool {
    struct Plain(bool);
    impl<'ast> Visit<'ast> for Plain {
        fn visit_type_reference(&mut self, ty: &'ast TypeReference) {
            self.0 &= ty.lifetime.is_some();
            visit::visit_type_reference(self, ty);
        }

        fn visit_type_impl_trait(&mut self, _: &'ast TypeImplTrait) {
            self.0 = false;
        }

        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            self.0 &= lifetime.ident != "_";
        }
    }
    let mut plain = Plain(generics.params.is_empty());
    params.iter().for_each(|param| plain.visit_type(&param.ty));
    plain.0
}
