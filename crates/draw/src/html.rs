//! Web pages of figures.
//!
//! Law: the page consists of the SVG picture and needs nothing from elsewhere. A click on something
//! that belongs to a thread shows only what belongs to that thread, and lists it below. Another
//! click, or Escape, shows everything again. The arrow keys go from thread to thread.

use crate::document::Document;
use crate::scene::Scene;
use crate::svg::{push_escaped, svg};
use crate::theme::{self, Mode, Paint, Theme};

const SCRIPT: &str = "\
const picture=document.querySelector('svg.tilewright'),told=document.getElementById('told');
const parts=[...picture.querySelectorAll('[data-t]')];
const threads=[...new Set(parts.map(part=>+part.dataset.t))].sort((a,b)=>a-b);
let shown=null;
function show(thread){
  shown=thread;
  picture.classList.toggle('isolating',thread!==null);
  const own=parts.filter(part=>{const on=+part.dataset.t===thread;part.classList.toggle('on',on);return on});
  told.textContent=thread===null?hint:gathered(own.map(part=>(part.querySelector('title')||{}).textContent||''));
}
function gathered(titles){
  const places=new Map();
  for(const title of titles.filter(Boolean)){
    const [who,...what]=title.split(', ');
    places.set(who,[...(places.get(who)||[]),...what]);
  }
  return [...places].map(([who,what])=>[who,...what].join(', ')).join('; ');
}
const hint=threads.length?'Click a cell to see one thread alone; arrow keys go on, Escape ends.':'';
picture.addEventListener('click',event=>{
  const part=event.target.closest('[data-t]');
  show(part&&+part.dataset.t!==shown?+part.dataset.t:null);
});
document.addEventListener('keydown',event=>{
  if(event.key==='Escape')return show(null);
  const step={ArrowRight:1,ArrowLeft:-1}[event.key];
  if(!step||!threads.length)return;
  const at=threads.indexOf(shown);
  show(threads[at<0?(step>0?0:threads.length-1):(at+step+threads.length)%threads.length]);
  event.preventDefault();
});
show(null);
";

/// The web page of a scene.
///
/// ```
/// use tilewright_draw::{Document, Scene, Tile, html};
///
/// let mut scene = Scene::new();
/// scene.tile(Tile { link: Some(3), ..Tile::at(0.0, 0.0, 30.0, 30.0) }, "T3", "", "thread 3");
/// let page = html(&scene, &Document { title: "One thread".to_owned(), ..Document::default() });
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("data-t=\"3\""));
/// ```
pub fn html(scene: &Scene, document: &Document) -> String {
    let picture = svg(scene, document);
    let mut page = String::with_capacity(picture.len() + 4096);
    head(&mut page, document);
    let ground = |mode: Mode| {
        let (paper, ink) = (Paint::Paper.rgb(mode).hex(), Paint::Faint.rgb(mode).hex());
        format!("body{{background:#{paper};color:#{ink}}}")
    };
    page.push_str(&ground(document.theme.mode()));
    if document.theme == Theme::Auto {
        page.push_str(&format!("\n@media(prefers-color-scheme:dark){{{}}}", ground(Mode::Dark)));
    }
    page.push_str(
        "\nbody{margin:16px;font-size:14px;line-height:1.5}\n#told{margin:0 16px 16px;min-height:3em;max-width:72em}\n\
         .tilewright [data-t]{cursor:pointer}\n.tilewright.isolating [data-t]:not(.on){opacity:.12}\n</style>\n</head>\n<body>\n",
    );
    page.push_str(&picture);
    page.push_str("<p id=\"told\" role=\"status\" aria-live=\"polite\"></p>\n<script>\n");
    page.push_str(SCRIPT);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

/// The beginning of a page, up to the content of its style element.
pub(crate) fn head(page: &mut String, document: &Document) {
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
    push_escaped(page, if document.title.is_empty() { "Layouts" } else { &document.title });
    page.push_str("</title>\n<style>\nbody{font-family:");
    page.push_str(theme::FONTS);
    page.push_str("}\n");
}
