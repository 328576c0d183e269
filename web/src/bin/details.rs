//! The program of the Plan page's details, and of the Recipes page.

fn main() {
    trainplan_web::details();
}
