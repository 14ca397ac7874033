// A figure as a file. Its colours come from the style sheet, and are written into the copy as attributes, which need no exception of the
// page's policy; the picture is drawn from the same elements, as an image of an address would need one.

import { downloadFile } from './csv'

const written = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-family', 'font-size']

export function downloadSVG(svg: SVGSVGElement) {
  const copy = svg.cloneNode(true) as SVGSVGElement
  const from = svg.querySelectorAll('*')
  copy.querySelectorAll('*').forEach((e, i) => {
    const style = getComputedStyle(from[i])
    for (const name of written) e.setAttribute(name, style.getPropertyValue(name))
    e.removeAttribute('class')
  })
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  downloadFile('figure.svg', new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' }))
}

const sharp = 2 // pixels of the picture for one of the page

export function downloadPNG(svg: SVGSVGElement) {
  const { width, height } = svg.getBoundingClientRect()
  const canvas = document.createElement('canvas')
  canvas.width = width * sharp
  canvas.height = height * sharp
  const c = canvas.getContext('2d')
  if (!c) return
  c.scale(sharp, sharp)
  c.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--panel')
  c.fillRect(0, 0, width, height)
  svg.querySelectorAll('line, rect, path, circle, text').forEach(e => draw(c, e))
  canvas.toBlob(blob => { if (blob) downloadFile('figure.png', blob) })
}

function draw(c: CanvasRenderingContext2D, e: Element) {
  const style = getComputedStyle(e)
  const n = (name: string) => Number(e.getAttribute(name) ?? 0)
  const shape = new Path2D(e.tagName === 'path' ? e.getAttribute('d') ?? '' : undefined)
  if (e.tagName === 'line') { shape.moveTo(n('x1'), n('y1')); shape.lineTo(n('x2'), n('y2')) }
  if (e.tagName === 'rect') shape.rect(n('x'), n('y'), n('width'), n('height'))
  if (e.tagName === 'circle') shape.arc(n('cx'), n('cy'), n('r'), 0, 2 * Math.PI)
  c.fillStyle = style.fill
  c.strokeStyle = style.stroke
  c.lineWidth = parseFloat(style.strokeWidth) || 1
  if (e.tagName === 'text') {
    c.font = `${style.fontSize} ${style.fontFamily}`
    c.textAlign = e.getAttribute('text-anchor') === 'end' ? 'right' : e.getAttribute('text-anchor') === 'middle' ? 'center' : 'left'
    return c.fillText(e.textContent ?? '', n('x'), n('y'))
  }
  if (style.fill !== 'none' && e.tagName !== 'line') c.fill(shape)
  if (style.stroke !== 'none') c.stroke(shape)
}
