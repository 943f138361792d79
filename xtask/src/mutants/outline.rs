//! The elements of a source: items by their paths, blocks, statements and conditions.

use std::ops::Range;

use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Stmt};

use super::find::{is_for_tests, range};

/// A function, constant or module.
#[derive(Debug)]
pub(crate) struct Item {
    /// With the enclosing modules, as in `partition::work::Partition::armed`.
    pub(crate) path: String,
    pub(crate) range: Range<usize>,
    /// Whether it cannot depend on a switch: the compiler may evaluate it, or it is assembly.
    pub(crate) is_constant: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) items: Vec<Item>,
    /// The content between the braces of each block.
    blocks: Vec<Range<usize>>,
    /// Each statement, and whether it is the value of its block.
    statements: Vec<(Range<usize>, bool)>,
    /// The conditions of `if`, `while` and guards, and the operands of `&&` and `||`.
    conditions: Vec<Range<usize>>,
    scope: Vec<String>,
}

impl Outline {
    /// Returns the elements of a source of this length in these modules, except those of code for
    /// tests and models.
    pub(crate) fn new(modules: &[String], length: usize, syntax: &syn::File) -> Self {
        let mut outline = Self { scope: modules.to_vec(), ..Self::default() };
        outline.add(0..length, true);
        outline.visit_file(syntax);
        outline
    }

    /// Returns the path of the function around `place`, unless the compiler may evaluate that.
    pub(super) fn function_around(&self, place: &Range<usize>) -> Option<&str> {
        // Of equal ranges, the innermost is the last.
        let around = self.items.iter().rev().filter(|item| contains(&item.range, place));
        let item = around.min_by_key(|item| item.range.len())?;
        (!item.is_constant).then_some(&item.path)
    }

    /// Returns the smallest block around `place`, without its braces.
    pub(crate) fn block(&self, place: &Range<usize>) -> Option<Range<usize>> {
        smallest(self.blocks.iter(), place).cloned()
    }

    /// Returns the smallest statement around `place`, and whether it is the value of its block.
    pub(crate) fn statement(&self, place: &Range<usize>) -> Option<(Range<usize>, bool)> {
        let around = self.statements.iter().filter(|(range, _)| contains(range, place));
        around.min_by_key(|(range, _)| range.len()).cloned()
    }

    /// Returns the smallest condition around `place`.
    pub(crate) fn condition(&self, place: &Range<usize>) -> Option<Range<usize>> {
        smallest(self.conditions.iter(), place).cloned()
    }

    fn add(&mut self, range: Range<usize>, is_constant: bool) {
        self.items.push(Item { path: self.scope.join("::"), range, is_constant });
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.scope.push(name);
        visit(self);
        self.scope.pop();
    }

    fn function(&mut self, attributes: &[Attribute], signature: &syn::Signature, block: &Block) {
        if !is_for_tests(attributes) {
            self.within(signature.ident.to_string(), |me| {
                let is_constant = signature.constness.is_some() || is_naked(attributes);
                me.add(range(signature).start..range(block).end, is_constant);
                me.visit_block(block);
            });
        }
    }
}

/// Returns whether a function is all assembly: `#[unsafe(naked)]`.
fn is_naked(attributes: &[Attribute]) -> bool {
    let mut lists = attributes.iter().filter_map(|attribute| attribute.meta.require_list().ok());
    lists.any(|list| list.path.is_ident("unsafe") && list.tokens.to_string() == "naked")
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn smallest<'a>(
    ranges: impl Iterator<Item = &'a Range<usize>>,
    place: &Range<usize>,
) -> Option<&'a Range<usize>> {
    ranges.filter(|range| contains(range, place)).min_by_key(|range| range.len())
}

/// Returns the name in paths of the type that `item` is for.
fn self_name(item: &syn::ItemImpl) -> String {
    let name = match &*item.self_ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    };
    name.unwrap_or_else(|| "_".to_owned())
}

impl<'ast> Visit<'ast> for Outline {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            self.within(item.ident.to_string(), |me| visit::visit_item_mod(me, item));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            self.within(self_name(item), |me| visit::visit_item_impl(me, item));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if !is_for_tests(&item.attrs) {
            self.within(item.ident.to_string(), |me| visit::visit_item_trait(me, item));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.within(item.ident.to_string(), |me| me.add(range(item), true));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.within(item.ident.to_string(), |me| me.add(range(item), true));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.within(item.ident.to_string(), |me| me.add(range(item), true));
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        // A constructor that is constant except in models.
        if let Ok(function) = item.parse_body::<syn::ImplItemFn>() {
            self.within(function.sig.ident.to_string(), |me| me.add(range(&function), true));
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.blocks
            .push(range(&block.brace_token.span.open()).end..range(&block.brace_token.span.close()).start);
        for (at, statement) in block.stmts.iter().enumerate() {
            let is_value = at + 1 == block.stmts.len() && matches!(statement, Stmt::Expr(_, None));
            self.statements.push((range(statement), is_value));
        }
        visit::visit_block(self, block);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.conditions.push(range(&expr.cond));
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.conditions.push(range(&expr.cond));
        visit::visit_expr_while(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.conditions.extend(arm.guard.as_ref().map(|(_, guard)| range(guard)));
        // A switch treats a value without braces as a block.
        if !matches!(&*arm.body, Expr::Block(_)) {
            self.statements.push((range(&arm.body), true));
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if matches!(expr.op, BinOp::And(_) | BinOp::Or(_)) {
            self.conditions.extend([range(&expr.left), range(&expr.right)]);
        }
        visit::visit_expr_binary(self, expr);
    }
}
